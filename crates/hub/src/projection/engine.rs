//! The tool result of aidk's engine, and its content blocks.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{Call, CallRejection, member, reason};
use rehearse_client::{Content, Failure, ToolOutcome};

/// The record of the engine's executor.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult<'a> {
    pub tool_use_id: &'a str,
    pub name: &'a str,
    pub success: bool,
    pub content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result as a block of a message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "type", rename = "tool_result")]
pub struct ToolResultBlock<'a> {
    pub tool_use_id: &'a str,
    pub name: &'a str,
    pub content: Vec<Block<'a>>,
    pub is_error: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Audio {
        source: Source<'a>,
    },
    Video {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        /// The name or URI of a resource.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<Cow<'a, str>>,
    },
    Json {
        text: Cow<'a, str>,
        data: &'a RawValue,
    },
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Source<'a> {
    Base64 {
        data: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
    },
    Url {
        url: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
    },
}

/// The JSON text of a failed call.
#[derive(Serialize)]
struct Report<'a> {
    error: &'a str,
    error_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_details: Option<Details>,
}

#[derive(Serialize)]
struct Details {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
}

impl<'a> ToolResult<'a> {
    pub(super) fn new(call: &Call<'a>, result: Result<&'a ToolOutcome, &Failure>) -> Self {
        match result {
            Ok(outcome) => ToolResult::from_outcome(call, outcome),
            Err(failure) => {
                let details = Details { name: failure.kind(), code: code(failure) };
                ToolResult::failed(call, reason(failure), error_type(failure), Some(details))
            }
        }
    }

    fn from_outcome(call: &Call<'a>, outcome: &'a ToolOutcome) -> Self {
        let error = outcome.is_error.then(|| match outcome.text() {
            text if text.is_empty() => "Tool execution failed".to_owned(),
            text => text,
        });
        let content = Block::list(outcome);
        ToolResult { tool_use_id: call.id, name: call.tool, success: !outcome.is_error, content, error }
    }

    pub(super) fn rejected(call: &Call<'a>, rejection: &CallRejection) -> Self {
        let (error, error_type) = match rejection {
            CallRejection::Denied => {
                let text = "Tool execution was denied by user.".into();
                return ToolResult::error(call, text, "User denied tool execution".to_owned());
            }
            CallRejection::UnknownTool => (format!("Tool \"{}\" is not available", call.tool), "TOOL_NOT_FOUND"),
            CallRejection::UnknownServer | CallRejection::NotConnected(_) => {
                (format!("MCP server \"{}\" is not connected", call.server), "APPLICATION_ERROR")
            }
            CallRejection::InvalidArguments(why) => (why.clone(), "VALIDATION_ERROR"),
            CallRejection::Disabled => (rejection.to_string(), "APPLICATION_ERROR"),
        };
        ToolResult::failed(call, error, error_type, None)
    }

    fn failed(call: &Call<'a>, error: String, error_type: &str, error_details: Option<Details>) -> Self {
        let report = serde_json::to_string(&Report { error: &error, error_type, error_details });
        ToolResult::error(call, report.unwrap_or_else(|_| error.clone()).into(), error)
    }

    fn error(call: &Call<'a>, text: Cow<'a, str>, error: String) -> Self {
        let content = vec![Block::Text { text }];
        ToolResult { tool_use_id: call.id, name: call.tool, success: false, content, error: Some(error) }
    }

    /// As a block of a message.
    pub fn into_block(self) -> ToolResultBlock<'a> {
        let ToolResult { tool_use_id, name, success, content, .. } = self;
        ToolResultBlock { tool_use_id, name, content, is_error: !success }
    }
}

fn error_type(failure: &Failure) -> &'static str {
    match failure {
        Failure::Timeout(_) => "TIMEOUT_ERROR",
        Failure::Disconnected { .. } => "NETWORK_ERROR",
        Failure::Http { status: 429, .. } => "RATE_LIMIT_ERROR",
        Failure::Http { status: 401 | 403, .. } | Failure::Unauthorized(_) => "AUTH_ERROR",
        Failure::Http { status: 408 | 504, .. } => "TIMEOUT_ERROR",
        Failure::Http { .. } => "NETWORK_ERROR",
        Failure::Rpc(error) if error.code == INVALID_PARAMS => "VALIDATION_ERROR",
        Failure::Rpc(_) | Failure::Unanswered { .. } | Failure::Unacknowledged(_) | Failure::Rounds(_) => {
            "APPLICATION_ERROR"
        }
        Failure::Malformed(_) => "INVALID_RETURN_TYPE",
        _ => "UNKNOWN_ERROR",
    }
}

/// JSON-RPC 2.0, section 5.1.
const INVALID_PARAMS: i64 = -32602;

fn code(failure: &Failure) -> Option<i64> {
    match failure {
        Failure::Rpc(error) => Some(error.code),
        Failure::Http { status, .. } => Some((*status).into()),
        _ => None,
    }
}

impl<'a> Block<'a> {
    /// One block per content item. Structured content is a JSON block, which replaces the text block that repeats it.
    fn list(outcome: &'a ToolOutcome) -> Vec<Block<'a>> {
        let mut structured = outcome.structured_content.as_deref();
        let value = structured.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let mut blocks = Vec::with_capacity(outcome.content.len() + 1);
        for content in &outcome.content {
            let parsed = match content {
                Content::Text { text, .. } if structured.is_some() => serde_json::from_str(text).ok(),
                _ => None,
            };
            match (content, structured) {
                (Content::Text { text, .. }, Some(data)) if parsed.is_some() && parsed == value => {
                    structured = None;
                    blocks.push(Block::Json { text: text.into(), data });
                }
                _ => blocks.push(Block::from_content(content)),
            }
        }
        blocks.extend(structured.map(Block::json));
        blocks
    }

    fn from_content(content: &'a Content) -> Block<'a> {
        match content {
            Content::Text { text, .. } => Block::Text { text: text.into() },
            Content::Image { mime_type, data, .. } => {
                Block::Image { source: Source::Base64 { data: data.into(), mime_type: Some(mime_type.into()) } }
            }
            Content::Audio { mime_type, data, .. } => {
                Block::Audio { source: Source::Base64 { data: data.into(), mime_type: Some(mime_type.into()) } }
            }
            Content::Resource { uri, mime_type, text, raw } => {
                let data = match text {
                    Some(text) => BASE64_STANDARD.encode(text),
                    None => member(raw, "/resource/blob").unwrap_or_default(),
                };
                let source = Source::Base64 { data: data.into(), mime_type: mime_type.as_deref().map(Cow::from) };
                Block::media(source, mime_type.as_deref().filter(|_| text.is_none()), uri.into())
            }
            Content::ResourceLink { uri, name, raw } => {
                let mime_type = member(raw, "/mimeType");
                let title = member(raw, "/title").unwrap_or_else(|| name.clone());
                let source = Source::Url { url: uri, mime_type: mime_type.clone().map(Cow::from) };
                Block::media(source, mime_type.as_deref(), title.into())
            }
        }
    }

    /// A block for binary data: a document unless it is an image, audio or video.
    fn media(source: Source<'a>, mime_type: Option<&str>, title: Cow<'a, str>) -> Block<'a> {
        match mime_type.and_then(|mime_type| mime_type.split('/').next()) {
            Some("image") => Block::Image { source },
            Some("audio") => Block::Audio { source },
            Some("video") => Block::Video { source },
            _ => Block::Document { source, title: Some(title) },
        }
    }

    fn json(data: &'a RawValue) -> Block<'a> {
        Block::Json { text: data.get().into(), data }
    }
}
