//! Messages of the Chat Completions API.

use serde_json::{Value as Json, json};

use super::{IncompletePart, Unsupported, data_url, items, media};
use crate::message::{Block, Media, StopReason, ToolCall, Usage, text_of};

/// The content of a message of the user: a text, or parts.
///
/// # Errors
/// The API has no such part.
pub(crate) fn write_content(blocks: &[Block]) -> Result<Json, Unsupported> {
    if blocks.iter().all(|block| matches!(block, Block::Text { .. })) {
        return Ok(text_of(blocks).into());
    }
    let part = |block: &Block| match block {
        Block::Text { text } => Some(Ok(json!({ "type": "text", "text": text }))),
        Block::Media(media) => Some(write_media(media)),
        Block::Thinking { .. } | Block::ToolCall(_) => None,
    };
    blocks.iter().filter_map(part).collect()
}

fn write_media(media: &Media) -> Result<Json, Unsupported> {
    let format = match &*media.mime_type {
        "application/pdf" => {
            let name = media.name.as_deref().unwrap_or("document.pdf");
            return Ok(json!({ "type": "file", "file": { "filename": name, "file_data": data_url(media) } }));
        }
        image if image.starts_with("image/") => {
            return Ok(json!({ "type": "image_url", "image_url": { "url": data_url(media) } }));
        }
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        other => return Err(Unsupported(other.to_owned())),
    };
    Ok(json!({ "type": "input_audio", "input_audio": { "data": media.data, "format": format } }))
}

/// A message of the assistant, without its thoughts, which this API does not take back.
pub(crate) fn write_assistant(blocks: &[Block]) -> Json {
    let (text, calls) = (text_of(blocks), blocks.iter().filter_map(write_call).collect::<Vec<_>>());
    if calls.is_empty() {
        return json!({ "role": "assistant", "content": text });
    }
    // Only a message with calls may have no content.
    let content = if text.is_empty() { Json::Null } else { text.into() };
    json!({ "role": "assistant", "content": content, "tool_calls": calls })
}

fn write_call(block: &Block) -> Option<Json> {
    let Block::ToolCall(ToolCall { id, name, arguments }) = block else { return None };
    Some(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }))
}

/// The blocks of a message of the assistant: thoughts, as many servers send them, text and calls.
///
/// # Errors
/// A tool call has not the members of one.
pub(crate) fn read_assistant(message: &Json) -> Result<Vec<Block>, IncompletePart> {
    let thoughts = [&message["reasoning_content"], &message["reasoning"]].into_iter().find_map(Json::as_str);
    let thinking =
        thoughts.filter(|it| !it.is_empty()).map(|it| Block::Thinking { text: it.to_owned(), signature: None });
    let mut blocks: Vec<Block> = thinking.into_iter().collect();
    blocks.extend(read_content(&message["content"]));
    blocks.extend(message["refusal"].as_str().filter(|it| !it.is_empty()).map(Block::text));
    for call in items(&message["tool_calls"]) {
        let member = |value: &Json, what: &str| match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(IncompletePart::new("a tool call", what)),
        };
        let (id, name) = (member(&call["id"], "an id")?, member(&call["function"]["name"], "a name")?);
        let arguments = match &call["function"]["arguments"] {
            Json::String(text) if text.is_empty() => "{}".to_owned(),
            Json::String(text) => text.clone(),
            Json::Null => "{}".to_owned(),
            other => other.to_string(),
        };
        blocks.push(Block::ToolCall(ToolCall { id, name, arguments }));
    }
    Ok(blocks)
}

/// The blocks of a content: a text, or parts. Parts of other kinds are left out.
pub(crate) fn read_content(content: &Json) -> Vec<Block> {
    if let Some(text) = content.as_str() {
        return (!text.is_empty()).then(|| Block::text(text)).into_iter().collect();
    }
    let part = |part: &Json| match part["type"].as_str()? {
        "text" => Some(Block::text(part["text"].as_str()?)),
        "refusal" => Some(Block::text(part["refusal"].as_str()?)),
        "image_url" => Some(Block::Media(media(part["image_url"]["url"].as_str()?, "image/*"))),
        "file" => Some(Block::Media(media(part["file"]["file_data"].as_str().unwrap_or_default(), "application/pdf"))),
        "input_audio" => {
            let audio = &part["input_audio"];
            let mime_type = format!("audio/{}", audio["format"].as_str()?);
            Some(Block::Media(Media { mime_type, data: audio["data"].as_str()?.to_owned(), name: None }))
        }
        _ => None,
    };
    items(content).iter().filter_map(part).collect()
}

const STOPS: [&str; 3] = ["stop", "tool_calls", "length"];

pub(crate) fn read_stop(name: &str) -> StopReason {
    super::read_stop(STOPS, if name == "function_call" { "tool_calls" } else { name })
}

pub(crate) fn write_stop(stop: &StopReason) -> &str {
    super::write_stop(STOPS, stop)
}

pub(crate) fn read_usage(usage: &Json) -> Usage {
    super::read_usage(usage, "prompt_tokens", "completion_tokens")
}

pub(crate) fn write_usage(usage: Usage) -> Json {
    super::write_usage(usage, "prompt_tokens", "completion_tokens")
}
