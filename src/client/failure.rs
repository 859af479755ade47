//! How a request to a server can fail.

use std::time::Duration;

use rmcp::{
    ErrorData, ServiceError,
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

use crate::{transport::client::LinkError, wire::RpcError};

/// A request that brought no result. It is data about the server, not an error of ours.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// No answer within this time. The server has been told, in the way of its transport.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The caller cancelled. The server has been told, in the way of its transport.
    #[error("cancelled")]
    Cancelled,
    /// The connection ended before the answer.
    #[error("disconnected: {detail}")]
    Disconnected { detail: String },
    /// The HTTP status of an answer without a JSON-RPC message, and the start of its body.
    #[error("HTTP {status}")]
    Http { status: u16, body: String },
    /// An answer that is no valid answer.
    #[error("malformed: {0}")]
    Malformed(String),
    /// A JSON-RPC error.
    #[error(transparent)]
    Rpc(RpcError),
}

impl Failure {
    /// One stable word: `timeout`, `cancelled`, `disconnected`, `http`, `malformed` or `rpc`.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::Timeout(_) => "timeout",
            Failure::Cancelled => "cancelled",
            Failure::Disconnected { .. } => "disconnected",
            Failure::Http { .. } => "http",
            Failure::Malformed(_) => "malformed",
            Failure::Rpc(_) => "rpc",
        }
    }

    pub(super) fn from_link(error: &LinkError) -> Failure {
        match error {
            LinkError::Status { status, body } => Failure::Http { status: *status, body: body.clone() },
            LinkError::Malformed(what) | LinkError::Invalid(what) => Failure::Malformed(what.clone()),
            error => Failure::Disconnected { detail: error.to_string() },
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
