//! Blocks of the Messages API.

use serde_json::{Value as Json, json};

use super::{IncompletePart, Unsupported, arguments_object, sealed};
use crate::message::{Block, Media, StopReason, ToolCall, Usage};

/// # Errors
/// The API has no such block.
pub(crate) fn write_blocks(blocks: &[Block]) -> Result<Vec<Json>, Unsupported> {
    blocks.iter().filter_map(|block| write_block(block).transpose()).collect()
}

/// `None` for what the API refuses: empty text, and thoughts without a signature.
fn write_block(block: &Block) -> Result<Option<Json>, Unsupported> {
    Ok(match block {
        Block::Text { text } => (!text.is_empty()).then(|| json!({ "type": "text", "text": text })),
        Block::Thinking { text, signature } => signature.as_ref().and_then(|signature| match signature.as_bytes() {
            [b'{', ..] => sealed(signature, "redacted_thinking"),
            _ => Some(json!({ "type": "thinking", "thinking": text, "signature": signature })),
        }),
        Block::ToolCall(ToolCall { id, name, arguments }) => {
            Some(json!({ "type": "tool_use", "id": id, "name": name, "input": arguments_object(arguments) }))
        }
        Block::Media(media) => {
            let kind = match &*media.mime_type {
                "application/pdf" => "document",
                image if image.starts_with("image/") => "image",
                other => return Err(Unsupported(other.to_owned())),
            };
            let source = json!({ "type": "base64", "media_type": media.mime_type, "data": media.data });
            Some(json!({ "type": kind, "source": source }))
        }
    })
}

/// `None` for a block of another kind.
///
/// # Errors
/// The block has not the members of its kind.
pub(crate) fn read_block(block: &Json) -> Result<Option<Block>, IncompletePart> {
    let kind = block["type"].as_str().ok_or_else(|| IncompletePart::new("a block", "`type`"))?;
    let text = |key: &str| match block[key].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(IncompletePart::new(format!("a block of type {kind:?}"), format!("a text `{key}`"))),
    };
    Ok(Some(match kind {
        "text" => Block::Text { text: text("text")? },
        "thinking" => {
            let signature = block["signature"].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
            Block::Thinking { text: text("thinking")?, signature }
        }
        "redacted_thinking" => Block::Thinking { text: String::new(), signature: Some(block.to_string()) },
        "tool_use" => {
            let arguments = match &block["input"] {
                // Of a stream: as the model wrote them.
                Json::String(written) if written.is_empty() => "{}".to_owned(),
                Json::String(written) => written.clone(),
                Json::Null => "{}".to_owned(),
                other => other.to_string(),
            };
            Block::ToolCall(ToolCall { id: text("id")?, name: text("name")?, arguments })
        }
        "image" | "document" => {
            let member = |key: &str| block["source"][key].as_str().unwrap_or_default().to_owned();
            let data = if block["source"]["type"] == "base64" { member("data") } else { String::new() };
            Block::Media(Media { mime_type: member("media_type"), data, name: None })
        }
        _ => return Ok(None),
    }))
}

const STOPS: [&str; 3] = ["end_turn", "tool_use", "max_tokens"];

pub(crate) fn read_stop(name: &str) -> StopReason {
    super::read_stop(STOPS, if name == "stop_sequence" { "end_turn" } else { name })
}

pub(crate) fn write_stop(stop: &StopReason) -> &str {
    super::write_stop(STOPS, stop)
}

/// The API counts the tokens of the cache apart from the others.
pub(crate) fn read_usage(usage: &Json) -> Usage {
    let tokens = |key: &str| usage[key].as_u64().unwrap_or_default();
    let (read, write) = (tokens("cache_read_input_tokens"), tokens("cache_creation_input_tokens"));
    Usage {
        input_tokens: tokens("input_tokens").saturating_add(read).saturating_add(write),
        output_tokens: tokens("output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: write,
    }
}

pub(crate) fn write_usage(usage: Usage) -> Json {
    let Usage { input_tokens, output_tokens, cache_read_tokens: read, cache_write_tokens: write } = usage;
    json!({
        "input_tokens": input_tokens.saturating_sub(read).saturating_sub(write),
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "output_tokens": output_tokens,
    })
}
