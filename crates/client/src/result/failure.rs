//! How a request to a server can fail.

use std::time::Duration;

use super::malformed::Malformed;
use crate::{oauth::AuthError, recorder::UnsolicitedFrame, transport::WireError};
use rehearse_protocol::RpcError;

/// A request without a result. It describes the server, not a fault of the client. Messages show the text next to its
/// [`kind`](Failure::kind), so it does not repeat that.
///
/// ```
/// use std::time::Duration;
///
/// use rehearse_client::Failure;
///
/// let failure = Failure::Timeout(Duration::from_secs(5).into());
/// assert_eq!((failure.kind(), failure.to_string()), ("timeout", "no answer within 5s".to_owned()));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// No answer in time. The client has cancelled the request.
    #[error(transparent)]
    Timeout(Overdue),
    /// The caller cancelled the request, and the client has notified the server.
    #[error("stopped by the caller")]
    Cancelled,
    /// The connection ended before the answer.
    #[error("{detail}")]
    Disconnected {
        /// The reason.
        detail: String,
    },
    /// The HTTP status of an answer without a JSON-RPC message, and the start of its body.
    #[error("status {status}")]
    Http {
        /// The HTTP status.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The server requires an authorization, and the client has none.
    #[error(transparent)]
    Unauthorized(AuthError),
    /// An invalid answer.
    #[error("{0}")]
    Malformed(String),
    /// A JSON-RPC error.
    #[error(transparent)]
    Rpc(RpcError),
    /// The server requests something that the session has no answer to, or that this protocol version cannot answer.
    #[error("the server asked for {method}: {why}")]
    Unanswered {
        /// The method of the request.
        method: String,
        /// The reason why there is no answer.
        why: &'static str,
    },
    /// The server does not send these notifications, which the client requested.
    #[error("the server does not send {}", .0.join(", "))]
    Unacknowledged(Vec<String>),
    /// The task was cancelled; the server's message, if there is one.
    #[error("the task was stopped{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    TaskCancelled(Option<String>),
    /// The server still asks for input after this many answers.
    #[error("the server still asks for input after {0} answers")]
    Rounds(usize),
}

/// So many messages in place of an answer may be why it does not come.
pub(crate) const FLOOD: u64 = 100;

/// A request that was not answered in time.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no answer within {limit:?}{}", .instead.as_deref().unwrap_or_default())]
pub struct Overdue {
    /// The time limit.
    pub limit: Duration,
    /// What the server sent meanwhile, if it is a flood of messages.
    instead: Option<String>,
}

impl From<Duration> for Overdue {
    fn from(limit: Duration) -> Overdue {
        Overdue { limit, instead: None }
    }
}

impl Overdue {
    /// With the number of messages that the server sent meanwhile, and the method of the last one that has a method.
    pub(crate) fn with_messages(limit: Duration, messages: u64, method: Option<&str>) -> Overdue {
        let named = method.map(|method| format!(", the last one {method}")).unwrap_or_default();
        let instead = || format!("; the server sent {messages} other messages meanwhile{named}");
        Overdue { limit, instead: (messages >= FLOOD).then(instead) }
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Failure {
        Failure::Malformed(malformed.to_string())
    }
}

impl Failure {
    /// All kinds of failures.
    pub const KINDS: [&str; 10] = [
        "timeout",
        "cancelled",
        "disconnected",
        "http",
        "unauthorized",
        "malformed",
        "rpc",
        "unanswered",
        "unacknowledged",
        "rounds",
    ];

    /// One stable word, one of [`Failure::KINDS`].
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Timeout(_) => "timeout",
            Failure::Cancelled | Failure::TaskCancelled(_) => "cancelled",
            Failure::Disconnected { .. } => "disconnected",
            Failure::Http { .. } => "http",
            Failure::Unauthorized(_) => "unauthorized",
            Failure::Malformed(_) => "malformed",
            Failure::Rpc(_) => "rpc",
            Failure::Unanswered { .. } => "unanswered",
            Failure::Unacknowledged(_) => "unacknowledged",
            Failure::Rounds(_) => "rounds",
        }
    }

    /// The failure of a whole whose last request failed like this.
    pub(crate) fn within(self, limit: Duration) -> Failure {
        match self {
            Failure::Timeout(overdue) => Failure::Timeout(Overdue { limit, ..overdue }),
            other => other,
        }
    }

    pub(crate) fn from_wire(error: WireError) -> Failure {
        match error {
            WireError::Status { status, body } => Failure::Http { status, body },
            WireError::Unauthorized(why) => Failure::Unauthorized(why),
            WireError::Malformed(what) | WireError::Invalid(what) => Failure::Malformed(what),
            error => Failure::Disconnected { detail: error.to_string() },
        }
    }

    /// A frame without the id of the request that can only be its answer.
    pub(crate) fn from_unsolicited(unsolicited: UnsolicitedFrame) -> Failure {
        match unsolicited {
            UnsolicitedFrame::ErrorWithoutId(error) => Failure::Rpc(error),
            unsolicited => Failure::Malformed(unsolicited.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_does_not_repeat_the_kind() {
        let detail = || "the stream ended".to_owned();
        let failures = [
            Failure::Timeout(Duration::from_secs(1).into()),
            Failure::Cancelled,
            Failure::Disconnected { detail: detail() },
            Failure::Http { status: 404, body: String::new() },
            Failure::Malformed(detail()),
            Failure::Unauthorized(AuthError::Store(detail())),
            Failure::Unanswered { method: "roots/list".into(), why: "this client has no answer to it" },
            Failure::Unacknowledged(vec!["notifications/x".into()]),
            Failure::TaskCancelled(None),
            Failure::Rounds(10),
        ];
        for failure in &failures {
            assert!(Failure::KINDS.contains(&failure.kind()));
            assert!(!failure.to_string().to_lowercase().contains(failure.kind()), "{}: {failure}", failure.kind());
        }
        assert_eq!(failures[2].to_string(), detail());
        assert_eq!(failures[4].to_string(), detail());
    }
}
