//! Single requests: tools, resources, prompts, ping.

use serde_json::{Map, Value, json, value::RawValue};

use super::{CallOptions, Session};
use crate::result::{Failure, ToolOutcome};
use rehearse_document::json_schema::example;
use rehearse_protocol::{Era, List, Operation};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What an argument is completed for.
#[derive(Clone, Copy, Debug)]
pub enum CompletionReference<'a> {
    /// The name of a prompt.
    Prompt(&'a str),
    /// The URI of a resource, or a URI template.
    Resource(&'a str),
}

impl Session {
    /// Calls a tool. Requests of the server are answered with the session's [`Answers`](crate::Answers), in 2026-07-28
    /// by repeating the call (Multi Round-Trip Requests).
    ///
    /// # Errors
    /// Any [`Failure`]. A tool that reports an error is an `Ok` with `is_error`.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<ToolOutcome, Failure> {
        let result = self.perform(Operation::call(name, arguments), options).await?;
        ToolOutcome::parse(result).map_err(Failure::from)
    }

    /// Reads a resource and returns the result as it came; see [`Session::call_tool`] for answers.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn read_resource(&self, uri: &str, options: CallOptions) -> Result<Box<RawValue>, Failure> {
        self.perform(Operation::read(uri), options).await
    }

    /// Gets a prompt and returns the result as it came; see [`Session::call_tool`] for answers. MCP requires arguments
    /// that are strings.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        self.perform(Operation::get(name, arguments), options).await
    }

    /// Requests completions of the value of an argument, and returns the result as it came. `context` has the values of
    /// other arguments.
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

    /// Sets the minimum level of log messages: at once on a legacy session, with every following request on a modern
    /// one, which has no request for it (2026-07-28, Logging: Per-Request Log Level).
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

    pub(crate) fn log_level_meta(&self) -> Option<Map<String, Value>> {
        let level = self.log_level().clone()?;
        Some(Map::from_iter([(LOG_LEVEL.to_owned(), level.into())]))
    }

    /// Checks that the server responds; 2026-07-28 has no `ping`.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn ping(&self) -> Result<(), Failure> {
        self.request("ping", None, CallOptions::default()).await.map(drop)
    }
}

/// The request for an item of a list, as listed: a call with an example of its schema, a prompt with a text for each
/// argument that it requires, a resource. `None` for a template.
pub fn example_operation(list: List, item: &Value) -> Option<Operation> {
    let name = item[list.key()].as_str()?;
    match list {
        List::Tools => Some(Operation::call(name, Some(example::object(&item["inputSchema"])))),
        List::Prompts => {
            let arguments = item["arguments"].as_array().into_iter().flatten();
            let required = arguments.filter(|argument| argument["required"] == true);
            let values = required.filter_map(|it| Some((it["name"].as_str()?.to_owned(), "test".into())));
            Some(Operation::get(name, Some(values.collect()).filter(|values: &Map<_, _>| !values.is_empty())))
        }
        List::Resources => Some(Operation::read(name)),
        List::ResourceTemplates => None,
    }
}
