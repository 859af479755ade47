//! Single requests: tools, resources, prompts, ping.

use std::time::Duration;

use serde_json::{Map, Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{Failure, Session, ToolOutcome};
use crate::wire::Era;

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// How to make one request.
///
/// Every request carries a `progressToken`, which rmcp adds and nothing can leave out. Whoever wants the progress or
/// log notifications of a request reads them, and the token in the request itself, from [`Session::recorder`].
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
    pub fn with_timeout(timeout: Duration) -> Self {
        CallOptions { timeout: Some(timeout), ..CallOptions::default() }
    }
}

/// Of what an argument is completed.
#[derive(Clone, Copy, Debug)]
pub enum CompletionReference<'a> {
    Prompt(&'a str),
    /// A resource's URI, or the template of one.
    Resource(&'a str),
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
        let result = self.request_in_rounds("tools/call", call_params(name, arguments), options).await?;
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
        self.request_in_rounds("prompts/get", call_params(name, arguments), options).await
    }

    /// Asks how the value of an argument can go on, and returns the result as it came. `context` has the values of other
    /// arguments.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn complete(
        &self,
        reference: CompletionReference<'_>,
        argument: &str,
        value: &str,
        context: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        let reference = match reference {
            CompletionReference::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            CompletionReference::Resource(uri) => json!({ "type": "ref/resource", "uri": uri }),
        };
        let argument = json!({ "name": argument, "value": value });
        let mut params = Map::from_iter([("ref".to_owned(), reference), ("argument".to_owned(), argument)]);
        if let Some(arguments) = context {
            params.insert("context".to_owned(), json!({ "arguments": arguments }));
        }
        self.request("completion/complete", Some(params), options).await
    }

    /// Sets the least severe log messages to be sent from now on: at once on a legacy session, with every following
    /// request on a modern one, which has no message for it (2026-07-28, Logging: Per-Request Log Level).
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn set_log_level(&self, level: &str, options: CallOptions) -> Result<(), Failure> {
        if self.info().version.era() == Era::Modern {
            *self.log_level() = Some(level.to_owned());
            return Ok(());
        }
        let params = Map::from_iter([("level".to_owned(), level.into())]);
        self.request("logging/setLevel", Some(params), options).await.map(drop)
    }

    pub(super) fn log_level_meta(&self) -> Option<Map<String, Value>> {
        let level = self.log_level().clone()?;
        Some(Map::from_iter([(LOG_LEVEL.to_owned(), level.into())]))
    }

    /// Asks for a sign of life; 2026-07-28 knows no `ping`.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn ping(&self) -> Result<(), Failure> {
        self.request("ping", None, CallOptions::default()).await.map(drop)
    }
}

pub(super) fn call_params(name: &str, arguments: Option<Map<String, Value>>) -> Map<String, Value> {
    let mut params = Map::from_iter([("name".to_owned(), name.into())]);
    if let Some(arguments) = arguments {
        params.insert("arguments".to_owned(), arguments.into());
    }
    params
}
