//! The end of a connection: who ended it, and how.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// How a connection ended. Judges go by who and how; the text is for people.
///
/// ```
/// use rehearse_protocol::{Closed, ClosedBy, ClosedHow};
///
/// let closed = Closed::by_server("the server reset the connection").broken();
/// assert_eq!((closed.by, closed.how), (ClosedBy::Server, ClosedHow::Broken));
/// assert_eq!(closed.to_string(), "the server reset the connection");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Who ended it.
    pub by: ClosedBy,
    /// How.
    pub how: ClosedHow,
    /// Both in a sentence.
    pub text: Arc<str>,
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClosedBy {
    /// The server, also by dying, or the network between.
    Server,
    /// The client.
    #[default]
    Client,
    /// This program as neither: by a limit of its own, or because a user stopped it.
    Limit,
}

/// How a connection was ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ClosedHow {
    /// As the transport prescribes it.
    #[default]
    Clean,
    /// In another way: a reset, a body that is cut off, a process that died.
    Broken,
    /// By a text message of a WebSocket that is not UTF-8 (RFC 6455, 8.1).
    NotUtf8,
    /// By a close frame that the other side did not answer (RFC 6455, 5.5.1).
    NoCloseFrame,
    /// By an `endpoint` of another origin, which the client refuses (2024-11-05, HTTP with SSE).
    ForeignEndpoint,
}

impl Closed {
    /// A clean end by the server.
    pub fn by_server(text: impl Into<Arc<str>>) -> Closed {
        Closed { by: ClosedBy::Server, how: ClosedHow::Clean, text: text.into() }
    }

    /// A clean end by the client.
    pub fn by_client(text: impl Into<Arc<str>>) -> Closed {
        Closed { by: ClosedBy::Client, ..Closed::by_server(text) }
    }

    /// An end by a limit of this program, or because a user stopped it.
    pub fn by_limit(text: impl Into<Arc<str>>) -> Closed {
        Closed { by: ClosedBy::Limit, ..Closed::by_server(text) }
    }

    /// The same, but broken.
    #[must_use]
    pub fn broken(self) -> Closed {
        self.with(ClosedHow::Broken)
    }

    /// The same, ended like this.
    #[must_use]
    pub fn with(self, how: ClosedHow) -> Closed {
        Closed { how, ..self }
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
