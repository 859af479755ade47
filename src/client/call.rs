//! Single requests: tools, resources, prompts, ping.

use std::time::Duration;

use serde_json::{Map, Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{Failure, Session, ToolOutcome};

/// How to make one request.
///
/// Every request carries a `progressToken`, which rmcp adds and nothing can leave out. Whoever wants the progress or
/// log notifications of a request reads them, and the token in the request itself, from [`Session::tap`].
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// Instead of the session's timeout. Progress does not extend it.
    pub timeout: Option<Duration>,
    /// Cancels the request, as a user would.
    pub cancel: Option<CancellationToken>,
    /// Further members for the request's `_meta`; on a modern session they overrule rmcp's own.
    pub meta: Option<Map<String, Value>>,
}

impl CallOptions {
    /// With another timeout than the session's.
    pub fn within(timeout: Duration) -> Self {
        CallOptions { timeout: Some(timeout), ..CallOptions::default() }
    }
}

impl Session {
    /// Calls a tool, and answers what the server asks on the way with the session's [`Answers`](super::Answers): in
    /// 2026-07-28 by calling it again for each round (Multi Round-Trip Requests).
    ///
    /// # Errors
    /// Any [`Failure`]. A tool that reports an error of its own is an `Ok` with `is_error`.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<ToolOutcome, Failure> {
        let result = self.request_in_rounds("tools/call", named(name, arguments), options).await?;
        ToolOutcome::parse(result).map_err(Failure::Malformed)
    }

    /// Reads a resource and returns the result as it came; answers as [`Session::call_tool`] does.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn read_resource(&self, uri: &str, options: CallOptions) -> Result<Box<RawValue>, Failure> {
        let params = Map::from_iter([("uri".to_owned(), uri.into())]);
        self.request_in_rounds("resources/read", params, options).await
    }

    /// Gets a prompt and returns the result as it came; answers as [`Session::call_tool`] does. MCP wants the arguments
    /// to be strings.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        self.request_in_rounds("prompts/get", named(name, arguments), options).await
    }

    /// Asks for a sign of life; 2026-07-28 knows no `ping`.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn ping(&self) -> Result<(), Failure> {
        self.request("ping", None, CallOptions::default()).await.map(drop)
    }
}

fn named(name: &str, arguments: Option<Map<String, Value>>) -> Map<String, Value> {
    let mut params = Map::from_iter([("name".to_owned(), name.into())]);
    if let Some(arguments) = arguments {
        params.insert("arguments".to_owned(), arguments.into());
    }
    params
}
