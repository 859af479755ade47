//! Requests and answers of the Responses API.

use serde_json::{Value as Json, json};

use super::{
    answer::{AnswerError, Progress, emit, failed, malformed},
    openai_chat::{effort, tool_choice},
};
use crate::{
    api::{
        Unsupported, items,
        openai_responses::{read_item, read_usage, write_content, write_item},
    },
    model::{Block, Delta, DeltaSink, GenerationOptions, Message, Request, Response, StopReason},
};

/// The members of a request that only this API has. The provider stores nothing, so it sends thoughts encrypted, and gets
/// them back.
///
/// # Errors
/// A message has a block that the API does not have.
pub(super) fn members(request: &Request<'_>) -> Result<Json, Unsupported> {
    let mut input = Vec::new();
    for message in request.messages {
        match message {
            Message::User { content } => input.push(json!({ "role": "user", "content": write_content(content)? })),
            Message::Assistant { content } => input.extend(content.iter().filter_map(write_item)),
            Message::ToolResult(result) => {
                let output = write_content(&result.content)?;
                input.push(json!({ "type": "function_call_output", "call_id": result.call_id, "output": output }));
            }
        }
    }
    let GenerationOptions { max_tokens, stop_sequences, .. } = request.options;
    let effort = effort(request.options)?;
    Ok(json!({
        "input": input,
        "store": false,
        "instructions": request.system,
        "max_output_tokens": max_tokens,
        "stop": (!stop_sequences.is_empty()).then_some(stop_sequences),
        "reasoning": effort.map(|effort| json!({ "effort": effort, "summary": "auto" })),
        // Models that do not think refuse it.
        "include": effort.map(|_| ["reasoning.encrypted_content"]),
        "tool_choice": tool_choice(request, |name| json!({ "type": "function", "name": name })),
    }))
}

/// # Errors
/// The answer is not a response, or the response failed.
pub(super) fn read(whole: &Json) -> Result<Response, AnswerError> {
    let output = whole["output"].as_array().ok_or_else(|| malformed("it has no array `output`"))?;
    let mut content = Vec::new();
    for item in output {
        content.extend(read_item(item)?);
    }
    let stop = match whole["incomplete_details"]["reason"].as_str() {
        Some("max_output_tokens") => StopReason::MaxTokens,
        Some(other) => StopReason::Other(other.to_owned()),
        None if content.iter().any(|block| matches!(block, Block::ToolCall(_))) => StopReason::ToolUse,
        None => match whole["status"].as_str() {
            Some("completed") => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.to_owned()),
            None => return Err(malformed("it has no text `status`")),
        },
    };
    Ok(Response { content, stop, usage: read_usage(&whole["usage"]) })
}

/// Adds an event of the stream. The last one has the whole response; some servers leave out its items.
///
/// # Errors
/// The event is an error.
pub(super) fn add(whole: &mut Json, mut event: Json, deltas: DeltaSink<'_>) -> Result<Progress, AnswerError> {
    match event["type"].as_str() {
        Some("response.output_text.delta" | "response.refusal.delta") => emit(&event["delta"], Delta::Text, deltas),
        Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
            emit(&event["delta"], Delta::Thinking, deltas);
        }
        Some("response.output_item.done") => match whole["output"].as_array_mut() {
            Some(output) => output.push(event["item"].take()),
            None => *whole = json!({ "output": [event["item"].take()] }),
        },
        Some("response.completed" | "response.incomplete" | "response.failed") => {
            let output = whole["output"].take();
            *whole = event["response"].take();
            if whole.is_object() && items(&whole["output"]).is_empty() && output.is_array() {
                whole["output"] = output;
            }
            return Ok(Progress::Complete);
        }
        Some("error") if event["error"].is_object() => return Err(failed(&event["error"])),
        // Its `type` is that of the event.
        Some("error") => return Err(failed(&json!({ "code": event["code"], "message": event["message"] }))),
        _ => {}
    }
    Ok(Progress::Open)
}
