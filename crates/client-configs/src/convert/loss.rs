//! What a conversion could not carry over.

use std::{fmt, sync::Arc};

use crate::secret::mask;
use rehearse_document::{Source, Span};

/// Something that the other format has no way to say, or says otherwise. No value of the file is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// `None` if it belongs to the file and not to a server.
    pub server: Option<String>,
    /// As the file calls it: `env.TOKEN`.
    pub field: String,
    pub reason: String,
    /// Whether the server is not in the new file at all.
    pub left_out: bool,
    pub source: Arc<Source>,
    /// Where the source says it.
    pub span: Span,
}

impl Loss {
    /// The same without secrets in its names.
    #[must_use]
    pub fn masked(&self) -> Loss {
        let mask = |text: &String| mask("", text).into_owned();
        let (server, field, reason) = (self.server.as_ref().map(mask), mask(&self.field), mask(&self.reason));
        Loss { server, field, reason, ..self.clone() }
    }
}

/// `file:line:column: server, field: why`
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.position(self.span.start);
        write!(f, "{}:{line}:{column}: ", self.source.name)?;
        if let Some(server) = &self.server {
            write!(f, "`{server}`")?;
            f.write_str(if self.left_out { " is left out: " } else { ", " })?;
        }
        match self.left_out {
            true => f.write_str(&self.reason),
            false => write!(f, "`{}`: {}", self.field, self.reason),
        }
    }
}
