//! Requests and answers of the Chat Completions API.

use serde_json::{Value as Json, json};

use super::answer::{AnswerError, Progress, append, emit, failed, malformed};
use crate::{
    api::{
        Unsupported, items,
        openai_chat::{read_assistant, read_stop, read_usage, write_assistant, write_content},
    },
    model::{Block, Delta, DeltaSink, GenerationOptions, Message, Request, Response, StopReason},
};

/// The members of a request that only this API has.
///
/// # Errors
/// A message has a block that the API does not have.
pub(super) fn members(request: &Request<'_>, is_streamed: bool) -> Result<Json, Unsupported> {
    let mut messages = Vec::new();
    messages.extend(request.system.map(|system| json!({ "role": "system", "content": system })));
    for message in request.messages {
        messages.push(match message {
            Message::User { content } => json!({ "role": "user", "content": write_content(content)? }),
            Message::Assistant { content } => write_assistant(content),
            Message::ToolResult(result) => {
                let media = result.content.iter().find_map(|block| match block {
                    Block::Media(media) => Some(&media.mime_type),
                    _ => None,
                });
                if let Some(mime_type) = media {
                    return Err(Unsupported(format!("{mime_type} in the result of a tool")));
                }
                json!({ "role": "tool", "tool_call_id": result.call_id, "content": write_content(&result.content)? })
            }
        });
    }
    let GenerationOptions { max_tokens, stop_sequences, .. } = request.options;
    Ok(json!({
        "messages": messages,
        "max_completion_tokens": max_tokens,
        "stop": (!stop_sequences.is_empty()).then_some(stop_sequences),
        "reasoning_effort": effort(request.options)?,
        "tool_choice": tool_choice(request, |name| json!({ "type": "function", "function": { "name": name } })),
        "stream_options": is_streamed.then(|| json!({ "include_usage": true })),
    }))
}

/// Which tool the model must call; `named` is the form of a name.
pub(super) fn tool_choice(request: &Request<'_>, named: fn(&str) -> Json) -> Option<Json> {
    let choice = request.options.tool_choice.as_deref().filter(|_| !request.tools.is_empty())?;
    Some(if ["auto", "none", "required"].contains(&choice) { choice.into() } else { named(choice) })
}

/// How much the model thinks, which these APIs take as a word.
///
/// # Errors
/// It is a number of tokens.
pub(super) fn effort(options: &GenerationOptions) -> Result<Option<&str>, Unsupported> {
    match options.thinking.as_deref() {
        Some(budget) if budget.parse::<u64>().is_ok() => {
            Err(Unsupported(format!("{budget} tokens for thinking; it takes an effort such as `high`")))
        }
        effort => Ok(effort),
    }
}

/// # Errors
/// The answer is not a chat completion.
pub(super) fn read(whole: &Json) -> Result<Response, AnswerError> {
    let choice = &whole["choices"][0];
    if !choice["message"].is_object() {
        return Err(malformed("it has no message in `choices`"));
    }
    let content = read_assistant(&choice["message"])?;
    let calls = content.iter().any(|block| matches!(block, Block::ToolCall(_)));
    // Some servers call tools with the reason `stop`, or without one.
    let stop = match choice["finish_reason"].as_str().map_or(StopReason::EndTurn, read_stop) {
        StopReason::EndTurn if calls => StopReason::ToolUse,
        StopReason::EndTurn if choice["message"]["refusal"].is_string() => StopReason::Other("refusal".to_owned()),
        stop => stop,
    };
    Ok(Response { content, stop, usage: read_usage(&whole["usage"]) })
}

/// Adds a chunk of the stream to the completion.
///
/// # Errors
/// The chunk is an error, or is none.
pub(super) fn add(whole: &mut Json, chunk: &Json, deltas: DeltaSink<'_>) -> Result<Progress, AnswerError> {
    if !chunk["error"].is_null() {
        return Err(failed(&chunk["error"]));
    }
    if !chunk.is_object() {
        return Err(malformed("a chunk is not an object"));
    }
    if whole["choices"].is_null() {
        *whole = json!({ "choices": [{ "message": {} }] });
    }
    if chunk["usage"].is_object() {
        whole["usage"] = chunk["usage"].clone();
    }
    for choice in items(&chunk["choices"]).iter().filter(|choice| choice["index"].as_u64().unwrap_or(0) == 0) {
        if choice["finish_reason"].is_string() {
            whole["choices"][0]["finish_reason"] = choice["finish_reason"].clone();
        }
        let (delta, message) = (&choice["delta"], &mut whole["choices"][0]["message"]);
        for (key, make) in [
            ("reasoning_content", Delta::Thinking as fn(String) -> Delta),
            ("reasoning", Delta::Thinking),
            ("content", Delta::Text),
            ("refusal", Delta::Text),
        ] {
            append(message, key, &delta[key]);
            emit(&delta[key], make, deltas);
        }
        for call in items(&delta["tool_calls"]) {
            add_call(message, call)?;
        }
    }
    Ok(Progress::Open)
}

/// Adds a piece of a tool call. A piece with a new index begins a call.
fn add_call(message: &mut Json, piece: &Json) -> Result<(), AnswerError> {
    if message["tool_calls"].is_null() {
        message["tool_calls"] = json!([]);
    }
    let Some(calls) = message["tool_calls"].as_array_mut() else { return Ok(()) };
    let index = &piece["index"];
    let at = match calls.iter().position(|call| call["index"] == *index && !index.is_null()) {
        Some(at) => at,
        None if piece["id"].is_string() => {
            calls.push(json!({ "index": index, "id": piece["id"], "function": {} }));
            calls.len() - 1
        }
        // Without an index, pieces belong to the last call.
        None => {
            calls.len().checked_sub(1).ok_or_else(|| malformed("the stream adds to a call that it did not begin"))?
        }
    };
    let function = &mut calls[at]["function"];
    append(function, "name", &piece["function"]["name"]);
    append(function, "arguments", &piece["function"]["arguments"]);
    Ok(())
}
