//! Items of the Responses API.

use serde_json::{Value as Json, json};

use super::{IncompletePart, Unsupported, data_url, items, media, sealed};
use crate::message::{Block, Media, ToolCall, Usage};

/// The content of a message of the user, or of the result of a call.
///
/// # Errors
/// The API has no such part.
pub(crate) fn write_content(blocks: &[Block]) -> Result<Json, Unsupported> {
    match blocks {
        [] => return Ok("".into()),
        [Block::Text { text }] => return Ok(text.as_str().into()),
        _ => {}
    }
    let part = |block: &Block| match block {
        Block::Text { text } => Some(Ok(json!({ "type": "input_text", "text": text }))),
        Block::Media(media) => Some(write_media(media)),
        Block::Thinking { .. } | Block::ToolCall(_) => None,
    };
    blocks.iter().filter_map(part).collect()
}

fn write_media(media: &Media) -> Result<Json, Unsupported> {
    match &*media.mime_type {
        "application/pdf" => {
            let name = media.name.as_deref().unwrap_or("document.pdf");
            Ok(json!({ "type": "input_file", "filename": name, "file_data": data_url(media) }))
        }
        image if image.starts_with("image/") => Ok(json!({ "type": "input_image", "image_url": data_url(media) })),
        other => Err(Unsupported(other.to_owned())),
    }
}

/// The item of a block of the assistant; `None` for thoughts that the API cannot take back.
pub(crate) fn write_item(block: &Block) -> Option<Json> {
    match block {
        Block::Text { text } => {
            let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            Some(json!({ "type": "message", "role": "assistant", "content": content }))
        }
        Block::Thinking { signature, .. } => sealed(signature.as_deref()?, "reasoning"),
        Block::ToolCall(ToolCall { id, name, arguments }) => {
            Some(json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments }))
        }
        Block::Media(_) => None,
    }
}

/// The blocks of an item; none for items of other kinds.
///
/// # Errors
/// The item has not the members of its kind.
pub(crate) fn read_item(item: &Json) -> Result<Vec<Block>, IncompletePart> {
    let text = |key: &str| match item[key].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => {
            let part = format!("an item of type {:?}", item["type"].as_str().unwrap_or_default());
            Err(IncompletePart::new(part, format!("a text `{key}`")))
        }
    };
    Ok(match item["type"].as_str() {
        // The type of a message may be left out.
        Some("message") | None => read_content(&item["content"]),
        Some("function_call") => {
            vec![Block::ToolCall(ToolCall { id: text("call_id")?, name: text("name")?, arguments: text("arguments")? })]
        }
        Some("reasoning") => {
            let summary = [&item["summary"], &item["content"]].into_iter().find(|it| !items(it).is_empty());
            let texts = summary.map(items).unwrap_or_default().iter().filter_map(|part| part["text"].as_str());
            let signature = item["encrypted_content"].is_string().then(|| item.to_string());
            vec![Block::Thinking { text: texts.collect::<Vec<_>>().join("\n"), signature }]
        }
        Some(_) => Vec::new(),
    })
}

/// The blocks of a content: a text, or parts. Parts of other kinds are left out.
pub(crate) fn read_content(content: &Json) -> Vec<Block> {
    if let Some(text) = content.as_str() {
        return vec![Block::text(text)];
    }
    let part = |part: &Json| match part["type"].as_str()? {
        "input_text" | "output_text" | "text" => Some(Block::text(part["text"].as_str()?)),
        "refusal" => Some(Block::text(part["refusal"].as_str()?)),
        "input_image" => Some(Block::Media(media(part["image_url"].as_str().unwrap_or_default(), "image/*"))),
        "input_file" => Some(Block::Media(media(part["file_data"].as_str().unwrap_or_default(), "application/pdf"))),
        _ => None,
    };
    items(content).iter().filter_map(part).collect()
}

pub(crate) fn read_usage(usage: &Json) -> Usage {
    super::read_usage(usage, "input_tokens", "output_tokens")
}

pub(crate) fn write_usage(usage: Usage) -> Json {
    let mut written = super::write_usage(usage, "input_tokens", "output_tokens");
    written["output_tokens_details"] = json!({ "reasoning_tokens": 0 });
    written
}
