//! One finding about a config: a code, a location, a sentence, a hint.

use std::{borrow::Cow, fmt, sync::Arc};

use rehearse_document::{Problem, Span};

/// The severity of a finding. Codes start with its first letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Correct, but there is a better way.
    Advice,
    /// The program accepts it, but probably not as intended.
    Warning,
    /// The program rejects it, or the server cannot be reached.
    Error,
}

/// A kind of finding, with a stable name such as `E-TRANSPORT`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Code {
    pub name: &'static str,
    /// A short description.
    pub title: &'static str,
}

/// A code with its explanation, in Markdown.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub code: &'static Code,
    pub help: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static Code,
    pub problem: Problem,
    /// The affected server.
    pub server: Option<Arc<str>>,
}

impl Code {
    pub fn severity(&self) -> Severity {
        match self.name.as_bytes().first() {
            Some(b'E') => Severity::Error,
            Some(b'W') => Severity::Warning,
            _ => Severity::Advice,
        }
    }

    /// A finding of this kind.
    pub fn at(&'static self, span: Span, message: impl Into<Cow<'static, str>>) -> Finding {
        Finding { code: self, problem: Problem::new(span, message), server: None }
    }
}

impl Finding {
    /// Sets the affected server.
    #[must_use]
    pub fn about(mut self, server: impl Into<Arc<str>>) -> Self {
        self.server = Some(server.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.problem = self.problem.hint(hint);
        self
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}
