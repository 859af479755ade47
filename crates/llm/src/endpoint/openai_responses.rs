//! The Responses API.

use serde_json::{Value as Json, json};

use super::{
    answer::{Answer, pieces, words},
    question::{Question, QuestionError, qualified},
};
use crate::{
    api::{
        items,
        openai_responses::{read_content, read_item, write_item, write_usage},
    },
    model::{Block, StopReason, text_of},
};

/// # Errors
/// The request is not one of this API, or it needs an earlier response: nothing is stored here.
pub(super) fn read(body: &Json) -> Result<Question, QuestionError> {
    let mut question = Question::new(body)?;
    for key in ["previous_response_id", "conversation"] {
        if !body[key].is_null() {
            return Err(QuestionError::Earlier(key));
        }
    }
    body["instructions"].as_str().into_iter().for_each(|text| question.add_system(text.to_owned()));
    if let Some(text) = body["input"].as_str() {
        question.add_user(vec![Block::text(text)]);
    } else if !body["input"].is_array() {
        return Err(QuestionError::member("`input`", "a text or a list of items"));
    }
    for (index, item) in items(&body["input"]).iter().enumerate() {
        let place = format!("input[{index}]");
        match (item["type"].as_str(), item["role"].as_str()) {
            (None | Some("message"), Some("user")) => question.add_user(read_content(&item["content"])),
            (None | Some("message"), Some("system" | "developer")) => {
                question.add_system(text_of(&read_content(&item["content"])));
            }
            (None | Some("message"), role) if role != Some("assistant") => {
                let roles = "`user`, `assistant`, `system` or `developer`";
                return Err(QuestionError::member(format!("{place}.role"), roles));
            }
            (Some("function_call_output"), _) => {
                let id = item["call_id"].as_str().ok_or(QuestionError::Missing { place, member: "call_id" })?;
                question.add_result(id, read_content(&item["output"]), false);
            }
            (Some("item_reference"), _) => return Err(QuestionError::Reference { place }),
            _ => {
                let mut blocks = read_item(item).map_err(|source| QuestionError::Part { place, source })?;
                if let ([Block::ToolCall(call)], Some(namespace)) = (&mut blocks[..], item["namespace"].as_str()) {
                    call.name = qualified(namespace, &call.name);
                }
                question.extend_assistant(blocks);
            }
        }
    }
    question.answer_schema = body["text"]["format"].get("schema").cloned();
    for tool in items(&body["tools"]) {
        if tool["type"] == "namespace" {
            // Codex says there what the instructions of a server say.
            tool["description"].as_str().into_iter().for_each(|text| question.add_system(text.to_owned()));
            let functions = items(&tool["tools"]).iter();
            functions.for_each(|it| question.add_tool(it, &it["parameters"], tool["name"].as_str()));
        } else {
            question.add_tool(tool, &tool["parameters"], None);
        }
    }
    Ok(question)
}

pub(super) fn write(answer: &Answer<'_>) -> Json {
    let response = answer.response;
    let (status, reason) = match &response.stop {
        StopReason::MaxTokens => ("incomplete", json!({ "reason": "max_output_tokens" })),
        StopReason::Other(reason) => ("incomplete", json!({ "reason": reason })),
        StopReason::EndTurn | StopReason::ToolUse => ("completed", Json::Null),
    };
    let output = (0..).zip(&response.content).filter_map(|(index, block)| item(answer, index, block));
    json!({
        "id": answer.id("resp"), "object": "response", "created_at": 0, "status": status, "error": null,
        "incomplete_details": reason, "instructions": null, "model": answer.question.model, "output": output.collect::<Vec<_>>(),
        "parallel_tool_calls": true, "previous_response_id": null, "store": false, "temperature": 1.0, "top_p": 1.0,
        "tool_choice": "auto", "tools": [], "metadata": {}, "usage": write_usage(response.usage),
    })
}

/// The whole item of a block.
fn item(answer: &Answer<'_>, index: u64, block: &Block) -> Option<Json> {
    let id = |prefix: &str| format!("{}_{index}", answer.id(prefix));
    let (prefix, mut item) = match block {
        Block::Thinking { text, signature } => {
            let summary = json!([{ "type": "summary_text", "text": text }]);
            ("rs", json!({ "type": "reasoning", "summary": summary, "encrypted_content": signature }))
        }
        Block::ToolCall(call) => {
            let mut item = write_item(block)?;
            if let Some((namespace, name)) = answer.question.in_namespace(&call.name) {
                (item["namespace"], item["name"]) = (namespace.into(), name.into());
            }
            ("fc", item)
        }
        _ => ("msg", write_item(block)?),
    };
    item["id"] = id(prefix).into();
    item["status"] = "completed".into();
    Some(item)
}

pub(super) fn events(answer: &Answer<'_>) -> Vec<Json> {
    let whole = write(answer);
    let mut begun = whole.clone();
    (begun["status"], begun["output"], begun["usage"]) = ("in_progress".into(), json!([]), Json::Null);
    begun["incomplete_details"] = Json::Null;
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    for (index, (item, block)) in items(&whole["output"]).iter().zip(&answer.response.content).enumerate() {
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        let mut parts: Vec<Json> = Vec::new();
        let event = |kind: &str, key: &str, value: Json| json!({ "type": format!("response.{kind}"), "item_id": item["id"], "output_index": index, key: value });
        match block {
            Block::ToolCall(call) => {
                begun["arguments"] = "".into();
                let deltas = pieces(&call.arguments);
                parts.extend(deltas.into_iter().map(|it| event("function_call_arguments.delta", "delta", it.into())));
                parts.push(event("function_call_arguments.done", "arguments", call.arguments.clone().into()));
            }
            Block::Text { text } | Block::Thinking { text, .. } => {
                let (list, part, name) = match block {
                    Block::Text { .. } => ("content", "content_part", "output_text"),
                    _ => ("summary", "reasoning_summary_part", "reasoning_summary_text"),
                };
                let whole_part = &item[list][0];
                begun[list] = json!([]);
                let mut empty = whole_part.clone();
                empty["text"] = "".into();
                parts.push(event(&format!("{part}.added"), "part", empty));
                parts.extend(words(text).map(|word| event(&format!("{name}.delta"), "delta", word.into())));
                parts.push(event(&format!("{name}.done"), "text", text.as_str().into()));
                parts.push(event(&format!("{part}.done"), "part", whole_part.clone()));
                let place = if list == "content" { "content_index" } else { "summary_index" };
                parts.iter_mut().for_each(|part| part[place] = 0.into());
            }
            Block::Media(_) => {}
        }
        events.push(event("output_item.added", "item", begun));
        events.append(&mut parts);
        events.push(event("output_item.done", "item", item.clone()));
    }
    let last = if whole["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(json!({ "type": last, "response": whole }));
    (0..).zip(&mut events).for_each(|(number, event): (u64, _)| event["sequence_number"] = number.into());
    events
}
