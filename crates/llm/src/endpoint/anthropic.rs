//! The Messages API.

use serde_json::{Value as Json, json};

use super::{
    answer::{Answer, pieces, words},
    question::{Question, QuestionError},
};
use crate::{
    api::{
        IncompletePart,
        anthropic::{read_block, write_blocks, write_stop, write_usage},
        items,
    },
    model::{Block, Usage, text_of},
};

/// # Errors
/// The request is not one of this API.
pub(super) fn read(body: &Json) -> Result<Question, QuestionError> {
    let mut question = Question::new(body)?;
    if !body["max_tokens"].is_u64() {
        return Err(QuestionError::member("max_tokens:", "a number"));
    }
    if !body["system"].is_null() {
        question.add_system(text_of(&blocks(&body["system"], "system")?));
    }
    let messages = body["messages"].as_array().filter(|it| !it.is_empty());
    let messages = messages.ok_or_else(|| QuestionError::member("messages:", "a list of messages"))?;
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        match message["role"].as_str() {
            Some("assistant") => question.add_assistant(blocks(&message["content"], &place)?),
            Some("user") => add_user(&mut question, message, &place)?,
            Some("system") => question.add_system(text_of(&blocks(&message["content"], &place)?)),
            _ => return Err(QuestionError::member(format!("{place}.role:"), "`user` or `assistant`")),
        }
    }
    let format = [&body["output_config"]["format"], &body["output_format"]];
    question.answer_schema = format.into_iter().find_map(|format| format.get("schema")).cloned();
    items(&body["tools"]).iter().for_each(|tool| question.add_tool(tool, &tool["input_schema"], None));
    Ok(question)
}

/// The results in a message come first. What else is in it belongs to the last result: agents add reminders there, and
/// these are no prompt.
fn add_user(question: &mut Question, message: &Json, place: &str) -> Result<(), QuestionError> {
    let content = &message["content"];
    let (results, others): (Vec<_>, Vec<_>) = items(content).iter().partition(|block| block["type"] == "tool_result");
    if results.is_empty() {
        question.add_user(blocks(content, place)?);
        return Ok(());
    }
    let mut others = blocks(&others.into_iter().cloned().collect(), place)?;
    for (index, result) in results.iter().enumerate() {
        let incomplete = || IncompletePart::new("a tool_result", "tool_use_id");
        let id = result["tool_use_id"].as_str();
        let id = id.ok_or_else(|| QuestionError::Part { place: place.to_owned(), source: incomplete() })?;
        let mut content = match &result["content"] {
            Json::Null => Vec::new(),
            content => blocks(content, place)?,
        };
        if index + 1 == results.len() {
            content.append(&mut others);
        }
        question.add_result(id, content, result["is_error"] == true);
    }
    Ok(())
}

/// A content: a text, or blocks.
fn blocks(content: &Json, place: &str) -> Result<Vec<Block>, QuestionError> {
    if let Some(text) = content.as_str() {
        return Ok(vec![Block::text(text)]);
    }
    let wrong = || QuestionError::member(format!("{place}.content:"), "a text or a list of blocks");
    let blocks = content.as_array().ok_or_else(wrong)?;
    let read = blocks.iter().filter_map(|block| read_block(block).transpose()).collect::<Result<_, _>>();
    read.map_err(|source| QuestionError::Part { place: format!("{place}.content"), source })
}

pub(super) fn write(answer: &Answer<'_>) -> Json {
    let response = answer.response;
    // A script has no media.
    let content = write_blocks(&response.content).unwrap_or_default();
    message(answer, content, write_stop(&response.stop).into(), response.usage)
}

fn message(answer: &Answer<'_>, content: Vec<Json>, stop: Json, usage: Usage) -> Json {
    json!({
        "id": answer.id("msg"), "type": "message", "role": "assistant", "model": answer.question.model, "content": content,
        "stop_reason": stop, "stop_sequence": null, "usage": write_usage(usage),
    })
}

pub(super) fn events(answer: &Answer<'_>) -> Vec<Json> {
    let response = answer.response;
    let start = message(answer, Vec::new(), Json::Null, Usage { output_tokens: 0, ..response.usage });
    let mut events = vec![json!({ "type": "message_start", "message": start }), json!({ "type": "ping" })];
    for (index, block) in response.content.iter().enumerate() {
        let text_delta = |kind: &str, key: &str, text: &str| json!({ "type": kind, key: text });
        let (start, deltas): (Json, Vec<Json>) = match block {
            Block::Text { text } => (
                json!({ "type": "text", "text": "" }),
                words(text).map(|word| text_delta("text_delta", "text", word)).collect(),
            ),
            Block::Thinking { text, signature } => {
                let words = words(text).map(|word| text_delta("thinking_delta", "thinking", word));
                let proof = signature.iter().map(|it| text_delta("signature_delta", "signature", it));
                (json!({ "type": "thinking", "thinking": "", "signature": "" }), words.chain(proof).collect())
            }
            Block::ToolCall(call) => (
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }),
                pieces(&call.arguments).iter().map(|it| text_delta("input_json_delta", "partial_json", it)).collect(),
            ),
            Block::Media(_) => continue,
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        let delta = |delta: Json| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": write_stop(&response.stop), "stop_sequence": null });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": write_usage(response.usage) }));
    events.push(json!({ "type": "message_stop" }));
    events
}
