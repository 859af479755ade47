//! How a request to a server can fail.

use std::time::Duration;

use rmcp::{
    ErrorData, ServiceError,
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

use crate::{
    transport::{UnsolicitedFrame, client::LinkError},
    wire::RpcError,
};

/// A request that brought no result. It is data about the server, not an error of ours. Its text stands beside its
/// [`kind`](Failure::kind), and does not repeat it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// No answer within this time. The server has been told, in the way of its transport.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The caller cancelled. The server has been told, in the way of its transport.
    #[error("given up by the caller")]
    Cancelled,
    /// The connection ended before the answer.
    #[error("{detail}")]
    Disconnected { detail: String },
    /// The HTTP status of an answer without a JSON-RPC message, and the start of its body.
    #[error("status {status}")]
    Http { status: u16, body: String },
    /// The server wants an authorization that could not be got.
    #[error("{0}")]
    Unauthorized(String),
    /// An answer that is no valid answer.
    #[error("{0}")]
    Malformed(String),
    /// A JSON-RPC error.
    #[error(transparent)]
    Rpc(RpcError),
    /// The server asks for something that the session has no answer to, or an answer that this era cannot carry; the
    /// request cannot go on.
    #[error("{method} is asked for, {why}")]
    Unanswered { method: String, why: &'static str },
    /// The server does not send these notifications, though it was asked to.
    #[error("there will be no {}", .0.join(", "))]
    Unacknowledged(Vec<String>),
    /// The task was cancelled; what the server says of it, if it does.
    #[error("the task was given up{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    TaskCancelled(Option<String>),
    /// The server asks again and again.
    #[error("more input is asked for after {0} times")]
    Rounds(usize),
}

impl Failure {
    /// The words for every kind of failure.
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

    /// One stable word, of [`Failure::KINDS`].
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

    pub(super) fn from_link(error: &LinkError) -> Failure {
        match error {
            LinkError::Status { status, body } => Failure::Http { status: *status, body: body.clone() },
            LinkError::Unauthorized(why) => Failure::Unauthorized(why.clone()),
            LinkError::Malformed(what) | LinkError::Invalid(what) => Failure::Malformed(what.clone()),
            error => Failure::Disconnected { detail: error.to_string() },
        }
    }

    /// A frame that does not carry the id of the request, but can only be its answer.
    pub(super) fn from_unsolicited(unsolicited: UnsolicitedFrame) -> Failure {
        match unsolicited {
            UnsolicitedFrame::ErrorWithoutId(error) => Failure::Rpc(error),
            unsolicited => Failure::Malformed(unsolicited.to_string()),
        }
    }

    pub(super) fn from_transport(error: &DynamicTransportError) -> Failure {
        match link_error(error) {
            Some(error) => Failure::from_link(error),
            None => Failure::Disconnected { detail: error.error.to_string() },
        }
    }

    pub(super) fn from_service(error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => Failure::Rpc(rpc_error(error)),
            ServiceError::TransportSend(error) => Failure::from_transport(&error),
            ServiceError::Timeout { timeout } => Failure::Timeout(timeout),
            ServiceError::Cancelled { .. } => Failure::Cancelled,
            ServiceError::UnexpectedResponse => Failure::Malformed("a result of another kind".to_owned()),
            error => Failure::Disconnected { detail: error.to_string() },
        }
    }
}

/// Our own error inside rmcp's.
pub(super) fn link_error(error: &DynamicTransportError) -> Option<&LinkError> {
    match error.error.downcast_ref::<StreamableHttpError<LinkError>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        Some(_) => None,
        None => error.error.downcast_ref(),
    }
}

pub(super) fn rpc_error(error: ErrorData) -> RpcError {
    let bare = RpcError::new(error.code.0.into(), error.message);
    match error.data {
        Some(data) => bare.with_data(data),
        None => bare,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_does_not_repeat_the_kind_beside_which_it_stands() {
        let detail = || "the stream ended".to_owned();
        let failures = [
            Failure::Timeout(Duration::from_secs(1)),
            Failure::Cancelled,
            Failure::Disconnected { detail: detail() },
            Failure::Http { status: 404, body: String::new() },
            Failure::Malformed(detail()),
            Failure::Unauthorized(detail()),
            Failure::Unanswered { method: "roots/list".into(), why: "and there is no answer" },
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
