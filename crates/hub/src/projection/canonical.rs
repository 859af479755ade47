//! The result, verbatim.

use serde::Serialize;
use serde_json::value::RawValue;

use super::CallRejection;
use rehearse_client::{Failure, ToolOutcome};
use rehearse_protocol::RpcError;

/// The result of a tool as the server sent it, or why there is none.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Canonical<'a> {
    Result(&'a RawValue),
    Failed {
        /// One of [`Failure::KINDS`], or `refused` if the call was not sent.
        failure: &'static str,
        message: String,
        /// The JSON-RPC error, if it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    },
}

impl<'a> Canonical<'a> {
    pub(super) fn new(result: Result<&'a ToolOutcome, &'a Failure>) -> Self {
        match result {
            Ok(outcome) => Canonical::Result(&outcome.raw),
            Err(failure) => {
                let error = if let Failure::Rpc(error) = failure { Some(error) } else { None };
                Canonical::Failed { failure: failure.kind(), message: failure.to_string(), error }
            }
        }
    }

    pub(super) fn rejected(rejection: &CallRejection) -> Self {
        Canonical::Failed { failure: "refused", message: rejection.to_string(), error: None }
    }
}
