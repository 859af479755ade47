//! The record `{success, output, data, error}` of code_agent.

use serde::{Serialize, ser::SerializeMap};
use serde_json::value::RawValue;

use super::{Call, CallRejection, member, reason};
use rehearse_client::{Content, Failure, ToolOutcome};

/// All four members are always there; `data` and `error` may be null.
#[derive(Clone, Debug, Serialize)]
pub struct ToolResult<'a> {
    pub success: bool,
    /// For people: the texts, and a reference in brackets to other content. Each block starts on a new line.
    pub output: String,
    pub data: Option<Data<'a>>,
    pub error: Option<String>,
}

/// The structured content. It is always an object: what the server sent, or what it sent as the member `output`.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a>(pub &'a RawValue);

impl Serialize for Data<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.get().starts_with('{') {
            return self.0.serialize(serializer);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("output", self.0)?;
        map.end()
    }
}

impl<'a> ToolResult<'a> {
    pub(super) fn new(call: &Call<'_>, result: Result<&'a ToolOutcome, &Failure>) -> Self {
        match result {
            Ok(outcome) => ToolResult::from_outcome(outcome),
            Err(failure) => ToolResult::error(not_called(call, reason(failure))),
        }
    }

    fn from_outcome(outcome: &'a ToolOutcome) -> Self {
        let output = output(&outcome.content);
        let error = outcome.is_error.then(|| match &*output {
            "" => "Tool execution failed.".to_owned(),
            output => format!("Tool execution failed. Details: {output}"),
        });
        ToolResult { success: !outcome.is_error, output, data: outcome.structured_content.as_deref().map(Data), error }
    }

    pub(super) fn rejected(call: &Call<'_>, rejection: &CallRejection) -> Self {
        ToolResult::error(match rejection {
            CallRejection::UnknownServer => format!("server not found: {}", call.server),
            CallRejection::NotConnected(why) => format!("failed to get MCP session: {why}"),
            rejection => not_called(call, rejection),
        })
    }

    fn error(error: String) -> Self {
        ToolResult { success: false, output: String::new(), data: None, error: Some(error) }
    }
}

fn not_called(call: &Call<'_>, error: impl std::fmt::Display) -> String {
    format!("failed to call MCP tool {:?} with err: {error}", call.tool)
}

fn output(content: &[Content]) -> String {
    let mut output = String::new();
    for content in content {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        match content {
            Content::Text { text, .. } => output.push_str(text),
            Content::Resource { text: Some(text), .. } => {
                output.push_str(&reference(content));
                output.push('\n');
                output.push_str(text);
            }
            content => output.push_str(&reference(content)),
        }
    }
    output
}

/// The kind, location, MIME type and size, if known: `[image: image/png, 70 bytes]`.
fn reference(content: &Content) -> String {
    let raw = content.raw();
    let size = |bytes: usize| Some(format!("{bytes} bytes"));
    let (kind, about): (&str, [Option<String>; 4]) = match content {
        Content::Text { .. } => ("text", [const { None }; 4]),
        Content::Image { mime_type, data, .. } => {
            ("image", [Some(mime_type.clone()), size(decoded_len(data)), None, None])
        }
        Content::Audio { mime_type, data, .. } => {
            ("audio", [Some(mime_type.clone()), size(decoded_len(data)), None, None])
        }
        Content::Resource { uri, mime_type, text, .. } => {
            let bytes = match text {
                Some(text) => size(text.len()),
                None => member(raw, "/resource/blob").and_then(|blob| size(decoded_len(&blob))),
            };
            ("resource", [Some(uri.clone()), mime_type.clone(), bytes, None])
        }
        Content::ResourceLink { uri, name, .. } => {
            let name = member(raw, "/title").or_else(|| Some(name.clone()));
            ("resource link", [Some(uri.clone()), name, member(raw, "/mimeType"), member(raw, "/description")])
        }
    };
    let about: Vec<_> = about.into_iter().flatten().collect();
    format!("[{kind}: {}]", about.join(", "))
}

/// The number of bytes that a base64 string encodes.
fn decoded_len(base64: &str) -> usize {
    base64.bytes().filter(u8::is_ascii_graphic).filter(|byte| *byte != b'=').count() * 3 / 4
}
