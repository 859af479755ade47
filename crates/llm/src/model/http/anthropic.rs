//! Requests and answers of the Messages API.

use serde_json::{Value as Json, json};

use super::answer::{AnswerError, Progress, append, emit, failed, malformed};
use crate::{
    api::{
        Unsupported,
        anthropic::{read_block, read_stop, read_usage, write_blocks},
    },
    model::{Delta, DeltaSink, GenerationOptions, Message, Request, Response},
};

/// The longest answer, in tokens, unless it is set: the API requires a limit.
const MAX_TOKENS: u32 = 8192;

/// The members of a request that only this API has. Messages with the same role become one.
///
/// # Errors
/// A message has a block that the API does not have.
pub(super) fn members(request: &Request<'_>) -> Result<Json, Unsupported> {
    let mut messages: Vec<(&str, Vec<Json>)> = Vec::new();
    for message in request.messages {
        let (role, blocks) = match message {
            Message::User { content } => ("user", write_blocks(content)?),
            Message::Assistant { content } => ("assistant", write_blocks(content)?),
            Message::ToolResult(result) => {
                let content = write_blocks(&result.content)?;
                let mut block = json!({ "type": "tool_result", "tool_use_id": result.call_id, "content": content });
                if result.is_error {
                    block["is_error"] = true.into();
                }
                ("user", vec![block])
            }
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    let messages: Json =
        messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
    let GenerationOptions { max_tokens, stop_sequences, thinking, tool_choice, .. } = request.options;
    let budget: Option<u32> = thinking.as_deref().and_then(|it| it.parse().ok());
    let effort = thinking.as_deref().filter(|_| budget.is_none());
    let of_effort = effort.map(|_| json!({ "type": "adaptive" }));
    let choice = tool_choice.as_deref().filter(|_| !request.tools.is_empty());
    Ok(json!({
        "messages": messages,
        // The limit includes the thoughts.
        "max_tokens": max_tokens.unwrap_or_else(|| MAX_TOKENS.saturating_add(budget.unwrap_or(0))),
        "system": request.system.filter(|it| !it.is_empty()),
        "stop_sequences": (!stop_sequences.is_empty()).then_some(stop_sequences),
        "thinking": budget.map_or(of_effort, |budget| Some(json!({ "type": "enabled", "budget_tokens": budget }))),
        "output_config": effort.map(|effort| json!({ "effort": effort })),
        "tool_choice": choice.map(|choice| match choice {
            "auto" | "none" => json!({ "type": choice }),
            "required" => json!({ "type": "any" }),
            name => json!({ "type": "tool", "name": name }),
        }),
    }))
}

/// # Errors
/// The answer is not a message.
pub(super) fn read(whole: &Json) -> Result<Response, AnswerError> {
    let blocks = whole["content"].as_array().ok_or_else(|| malformed("it has no array `content`"))?;
    let content = blocks.iter().filter_map(|block| read_block(block).transpose()).collect::<Result<_, _>>();
    let content = content?;
    let stop = whole["stop_reason"].as_str().ok_or_else(|| malformed("it has no text `stop_reason`"))?;
    Ok(Response { content, stop: read_stop(stop), usage: read_usage(&whole["usage"]) })
}

/// Adds an event of the stream to the message.
///
/// # Errors
/// The event is an error, or does not fit what came before.
pub(super) fn add(whole: &mut Json, mut event: Json, deltas: DeltaSink<'_>) -> Result<Progress, AnswerError> {
    let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok());
    match event["type"].as_str() {
        Some("message_start") => {
            *whole = event["message"].take();
            match whole.as_object_mut() {
                Some(message) => message.insert("content".to_owned(), json!([])),
                None => return Err(malformed("the event `message_start` has no message")),
            };
        }
        Some("content_block_start") => match whole["content"].as_array_mut() {
            Some(content) if index == Some(content.len()) => {
                let block = event["content_block"].take();
                emit(&block["text"], Delta::Text, deltas);
                emit(&block["thinking"], Delta::Thinking, deltas);
                content.push(block);
            }
            _ => return Err(malformed("the blocks of the stream are not in order")),
        },
        Some("content_block_delta") => {
            let block = index.and_then(|index| whole["content"].as_array_mut()?.get_mut(index));
            let block = block.ok_or_else(|| malformed("the stream adds to a block that it did not begin"))?;
            let delta = &event["delta"];
            match delta["type"].as_str() {
                Some("text_delta") => {
                    append(block, "text", &delta["text"]);
                    emit(&delta["text"], Delta::Text, deltas);
                }
                Some("thinking_delta") => {
                    append(block, "thinking", &delta["thinking"]);
                    emit(&delta["thinking"], Delta::Thinking, deltas);
                }
                Some("signature_delta") => append(block, "signature", &delta["signature"]),
                Some("input_json_delta") => append(block, "input", &delta["partial_json"]),
                _ => {}
            }
        }
        Some("message_delta") => {
            let Some(message) = whole.as_object_mut() else {
                return Err(malformed("the stream has no `message_start`"));
            };
            if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                message.insert("stop_reason".to_owned(), reason.into());
            }
            let usage = message.entry("usage").or_insert_with(|| json!({}));
            if let (Some(usage), Some(more)) = (usage.as_object_mut(), event["usage"].as_object()) {
                let known = more.iter().filter(|(_, tokens)| tokens.is_u64());
                usage.extend(known.map(|(key, tokens)| (key.clone(), tokens.clone())));
            }
        }
        Some("message_stop") => return Ok(Progress::Complete),
        Some("error") => return Err(failed(&event["error"])),
        _ => {}
    }
    Ok(Progress::Open)
}
