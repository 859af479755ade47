//! The Chat Completions API.

use serde_json::{Map, Value as Json, json};

use super::{
    answer::{Answer, pieces, words},
    question::{Question, QuestionError},
};
use crate::{
    api::{
        items,
        openai_chat::{read_assistant, read_content, write_assistant, write_stop, write_usage},
    },
    model::{Block, text_of},
};

/// # Errors
/// The request is not one of this API.
pub(super) fn read(body: &Json) -> Result<Question, QuestionError> {
    let mut question = Question::new(body)?;
    let messages = body["messages"].as_array().filter(|it| !it.is_empty());
    let messages = messages.ok_or_else(|| QuestionError::member("`messages`", "a list of messages"))?;
    for (index, message) in messages.iter().enumerate() {
        let (content, place) = (read_content(&message["content"]), format!("messages[{index}]"));
        match message["role"].as_str() {
            Some("system" | "developer") => question.add_system(text_of(&content)),
            Some("user") => question.add_user(content),
            Some("assistant") => {
                let blocks = read_assistant(message).map_err(|source| QuestionError::Part { place, source })?;
                question.add_assistant(blocks);
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str();
                let id = id.ok_or(QuestionError::Missing { place, member: "tool_call_id" })?;
                question.add_result(id, content, false);
            }
            _ => {
                let roles = "`system`, `developer`, `user`, `assistant` or `tool`";
                return Err(QuestionError::member(format!("{place}.role"), roles));
            }
        }
    }
    for tool in items(&body["tools"]) {
        let definition = [&tool["function"], &tool["custom"]].into_iter().find(|it| it.is_object()).unwrap_or(tool);
        question.add_tool(definition, &definition["parameters"], None);
    }
    question.answer_schema = body["response_format"]["json_schema"].get("schema").cloned();
    question.with_usage = body["stream_options"]["include_usage"] == true;
    Ok(question)
}

pub(super) fn write(answer: &Answer<'_>) -> Json {
    let response = answer.response;
    let mut message = write_assistant(&response.content);
    message["refusal"] = Json::Null;
    if let Some(thoughts) = thoughts(&response.content) {
        message["reasoning_content"] = thoughts.into();
    }
    let reason = write_stop(&response.stop);
    json!({
        "id": answer.id("chatcmpl"), "object": "chat.completion", "created": 0, "model": answer.question.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": write_usage(response.usage),
    })
}

fn thoughts(blocks: &[Block]) -> Option<&str> {
    blocks.iter().find_map(|block| match block {
        Block::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    })
}

pub(super) fn events(answer: &Answer<'_>) -> Vec<Json> {
    let response = answer.response;
    let chunk = |choices: Json| {
        json!({
            "id": answer.id("chatcmpl"), "object": "chat.completion.chunk", "created": 0, "model": answer.question.model,
            "choices": choices,
        })
    };
    let choice = |delta: Json, reason: Json| {
        chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]))
    };
    let mut chunks = vec![choice(json!({ "role": "assistant", "content": "" }), Json::Null)];
    let mut call_index = 0;
    for block in &response.content {
        let mut text = |key: &str, text: &str| {
            let delta = |word: &str| Json::Object(Map::from_iter([(key.to_owned(), word.into())]));
            chunks.extend(words(text).map(|word| choice(delta(word), Json::Null)));
        };
        match block {
            Block::Text { text: it } => text("content", it),
            Block::Thinking { text: it, .. } => text("reasoning_content", it),
            Block::ToolCall(call) => {
                let piece = |call: Json| choice(json!({ "tool_calls": [call] }), Json::Null);
                let function = json!({ "name": call.name, "arguments": "" });
                let start = json!({ "index": call_index, "id": call.id, "type": "function", "function": function });
                chunks.push(piece(start));
                let more = |it: &String| piece(json!({ "index": call_index, "function": { "arguments": it } }));
                chunks.extend(pieces(&call.arguments).iter().map(more));
                call_index += 1;
            }
            Block::Media(_) => {}
        }
    }
    chunks.push(choice(json!({}), write_stop(&response.stop).into()));
    if answer.question.with_usage {
        let mut last = chunk(json!([]));
        last["usage"] = write_usage(response.usage);
        chunks.push(last);
    }
    chunks.push("[DONE]".into());
    chunks
}
