//! What a validator has to say about a config: a code, a place, a sentence, a hint.

use std::fmt;

use super::{Problem, Span};

/// How bad a finding is. Its letter begins the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Correct, and yet there is a better way.
    Advice,
    /// The program takes it, but hardly as it was meant.
    Warning,
    /// The program that owns the format rejects it, or the server cannot be reached.
    Error,
}

/// The stable name of one kind of finding, such as `E-TRANSPORT`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Code {
    pub name: &'static str,
    /// What is the matter, in a few words.
    pub title: &'static str,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static Code,
    pub problem: Problem,
    /// The server that it is about.
    pub server: Option<String>,
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
    pub fn at(&'static self, span: Span, message: impl Into<String>) -> Finding {
        Finding { code: self, problem: Problem::new(span, message), server: None }
    }
}

impl Finding {
    /// It is about this server.
    #[must_use]
    pub fn about(mut self, server: &str) -> Self {
        self.server = Some(server.to_owned());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
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

/// Declares the codes, and [`codes::ALL`] with all of them.
macro_rules! codes {
    ($($constant:ident = $name:literal: $title:literal;)*) => {
        $(pub static $constant: Code = Code { name: $name, title: $title };)*
        /// Every code, in the order of the documentation.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

/// The kinds of findings.
pub mod codes {
    use super::Code;

    codes! {
        ROOT = "E-ROOT": "the file has no servers where the program looks for them";
        VALUE_TYPE = "E-VALUE-TYPE": "a value of the wrong type";
        UNKNOWN_KEY = "W-UNKNOWN-KEY": "a key that the program does not know but that looks like one it does";
        EXTRA_KEY = "A-EXTRA-KEY": "a key that the program ignores";
        TRANSPORT = "E-TRANSPORT": "a transport that is missing or unknown";
        MISSING = "E-MISSING": "what the transport needs is missing";
        FORBIDDEN = "E-FORBIDDEN": "something that the transport does not have";
        IGNORED = "W-IGNORED": "something that the program ignores for this transport";
        TIMEOUT = "E-TIMEOUT": "a timeout out of its range";
        TIMEOUT_UNIT = "W-TIMEOUT-UNIT": "a timeout that looks like another unit";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_and_a_severity() {
        let names: HashSet<_> = codes::ALL.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), codes::ALL.len());
        for name in names {
            assert!(["E-", "W-", "A-"].iter().any(|letter| name.starts_with(letter)), "{name}");
        }
        assert_eq!(codes::TRANSPORT.severity(), Severity::Error);
        assert!(Severity::Error > Severity::Warning && Severity::Warning > Severity::Advice);
    }
}
