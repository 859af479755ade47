//! The record `{content, isError, success}` that MCPilot passes to its model as JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Call, CallRejection, reason, structured_without_text};
use rehearse_client::{Failure, ToolOutcome};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response<'a> {
    pub content: Vec<Item<'a>>,
    pub is_error: bool,
    pub success: bool,
}

/// MCPilot dropped links, audio and unknown content; here every block is passed on.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    /// A block, verbatim.
    Block(&'a RawValue),
    Text(Text),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "text")]
pub struct Text {
    pub text: String,
}

impl<'a> Response<'a> {
    pub(super) fn new(result: Result<&'a ToolOutcome, &Failure>) -> Self {
        match result {
            Ok(outcome) => {
                let blocks = outcome.content.iter().map(|content| Item::Block(content.raw()));
                let structured =
                    structured_without_text(outcome).map(|raw| Item::Text(Text { text: raw.get().to_owned() }));
                let content = blocks.chain(structured).collect();
                Response { content, is_error: outcome.is_error, success: !outcome.is_error }
            }
            Err(failure) => Response::error(reason(failure)),
        }
    }

    pub(super) fn rejected(call: &Call<'_>, rejection: &CallRejection) -> Self {
        let Call { server, tool, .. } = call;
        Response::error(match rejection {
            CallRejection::UnknownServer | CallRejection::NotConnected(_) => format!(
                "No connection found for server: {server}. Please make sure to use MCP servers available under \
                 'Connected MCP Servers'."
            ),
            CallRejection::Disabled => format!("Server \"{server}\" is disabled and cannot be used"),
            CallRejection::UnknownTool => format!("Unknown tool: {tool}"),
            CallRejection::InvalidArguments(why) => format!("Invalid parameters: {why}"),
            CallRejection::Denied => rejection.to_string(),
        })
    }

    fn error(text: String) -> Self {
        Response { content: vec![Item::Text(Text { text })], is_error: true, success: false }
    }
}
