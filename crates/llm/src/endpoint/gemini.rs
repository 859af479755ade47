//! The Gemini API.

use serde_json::{Value as Json, json};

use super::{
    answer::{Answer, words},
    question::{Question, QuestionError},
};
use crate::{
    api::{IncompletePart, arguments_object, items},
    model::{Block, Media, StopReason, ToolCall, Usage, text_of},
};

/// # Errors
/// The request is not one of this API.
pub(super) fn read(body: &Json, model: &str, is_streamed: bool) -> Result<Question, QuestionError> {
    let mut question = Question::of(model.to_owned(), is_streamed);
    let system = member(body, "systemInstruction");
    match system.as_str() {
        Some(text) => question.add_system(text.to_owned()),
        None if system.is_null() => {}
        None => question.add_system(text_of(&blocks(items(&system["parts"]), "systemInstruction.parts", &mut 0)?)),
    }
    let contents = body["contents"].as_array().filter(|it| !it.is_empty());
    let contents = contents.ok_or_else(|| QuestionError::member("contents", "a list of contents"))?;
    // Old clients send no ids: the results are in the order of the calls.
    let (mut calls, mut results) = (0, 0);
    for (index, content) in contents.iter().enumerate() {
        let place = format!("contents[{index}].parts");
        let parts = content["parts"].as_array();
        let parts = parts.ok_or_else(|| QuestionError::member(&place, "a list of parts"))?;
        let blocks = blocks(parts, &place, &mut calls)?;
        let responses: Vec<_> = parts.iter().map(|part| member(part, "functionResponse")).collect();
        let responses: Vec<_> = responses.into_iter().filter(|it| !it.is_null()).collect();
        match (content["role"].as_str(), responses.split_last()) {
            (Some("model"), _) => question.add_assistant(blocks),
            (None | Some("user" | "function"), None) => question.add_user(blocks),
            (None | Some("user" | "function"), Some((last, earlier))) => {
                // Text beside results is no prompt: it belongs to the last one.
                let more = std::iter::repeat_n(Vec::new(), earlier.len()).chain([blocks]);
                for (response, more) in earlier.iter().chain([last]).zip(more) {
                    add_result(&mut question, response, more, &mut results);
                }
            }
            _ => return Err(QuestionError::member(format!("contents[{index}].role"), "`user` or `model`")),
        }
    }
    for tool in items(&body["tools"]) {
        let declarations = items(member(tool, "functionDeclarations"));
        for declaration in declarations {
            let schema = ["parametersJsonSchema", "parameters"].map(|name| member(declaration, name));
            let schema = schema.into_iter().find(|it| !it.is_null()).unwrap_or(&Json::Null);
            question.add_tool(declaration, schema, None);
        }
    }
    let config = member(body, "generationConfig");
    let schemas = ["responseJsonSchema", "responseSchema"].map(|name| member(config, name));
    question.answer_schema = schemas.into_iter().find(|it| !it.is_null()).map(with_small_types);
    Ok(question)
}

/// A member, whose name may be written as in protocol buffers.
fn member<'j>(object: &'j Json, name: &str) -> &'j Json {
    if let Some(member) = object.get(name) {
        return member;
    }
    let words: String = name
        .chars()
        .map(|it| if it.is_uppercase() { format!("_{}", it.to_lowercase()) } else { it.to_string() })
        .collect();
    &object[words]
}

/// The blocks of parts; results of calls and parts of other kinds are left out.
fn blocks(parts: &[Json], place: &str, calls: &mut u64) -> Result<Vec<Block>, QuestionError> {
    let mut blocks = Vec::new();
    for part in parts {
        let (call, data) = (member(part, "functionCall"), member(part, "inlineData"));
        if let Some(text) = part["text"].as_str() {
            let signature = member(part, "thoughtSignature").as_str().map(str::to_owned);
            let thought = Block::Thinking { text: text.to_owned(), signature };
            blocks.push(if part["thought"] == true { thought } else { Block::text(text) });
        } else if !call.is_null() {
            let incomplete = || IncompletePart::new("a functionCall", "name");
            let name = call["name"].as_str();
            let name = name.ok_or_else(|| QuestionError::Part { place: place.to_owned(), source: incomplete() })?;
            let arguments = if call["args"].is_null() { json!({}) } else { call["args"].clone() };
            let call = ToolCall { id: call_id(call, calls), name: name.to_owned(), arguments: arguments.to_string() };
            blocks.push(Block::ToolCall(call));
        } else if let Some(bytes) = data["data"].as_str() {
            let mime_type = member(data, "mimeType").as_str().unwrap_or_default().to_owned();
            blocks.push(Block::Media(Media { mime_type, data: bytes.to_owned(), name: None }));
        }
    }
    Ok(blocks)
}

fn call_id(call: &Json, count: &mut u64) -> String {
    *count += 1;
    call["id"].as_str().map_or_else(|| format!("call_{count}"), str::to_owned)
}

fn add_result(question: &mut Question, response: &Json, mut more: Vec<Block>, results: &mut u64) {
    let value = &response["response"];
    let outcome = ["output", "result", "error"].into_iter().find(|name| !value[*name].is_null());
    let text = outcome.map_or(value, |name| &value[name]);
    let mut content = vec![Block::text(text.as_str().map_or_else(|| text.to_string(), str::to_owned))];
    content.extend(blocks(items(&response["parts"]), "", &mut 0).unwrap_or_default());
    content.append(&mut more);
    question.add_result(&call_id(response, results), content, outcome == Some("error"));
}

/// A schema whose types are written in small letters, as in JSON Schema.
fn with_small_types(schema: &Json) -> Json {
    match schema {
        Json::Object(members) => {
            let small = members.iter().map(|(name, value)| match value {
                Json::String(kind) if name == "type" => (name.clone(), kind.to_lowercase().into()),
                _ => (name.clone(), with_small_types(value)),
            });
            Json::Object(small.collect())
        }
        Json::Array(items) => items.iter().map(with_small_types).collect(),
        other => other.clone(),
    }
}

pub(super) fn write(answer: &Answer<'_>) -> Json {
    let parts = answer.response.content.iter().filter_map(part).collect();
    with_end(chunk(answer, parts), answer)
}

pub(super) fn events(answer: &Answer<'_>) -> Vec<Json> {
    let mut chunks = Vec::new();
    for part in answer.response.content.iter().filter_map(part) {
        let pieces = part["text"].as_str().map_or_else(
            || vec![part.clone()],
            |text| {
                let piece = |word| {
                    let mut piece = part.clone();
                    piece["text"] = Json::from(word);
                    piece
                };
                words(text).map(piece).collect()
            },
        );
        chunks.extend(pieces.into_iter().map(|piece| chunk(answer, vec![piece])));
    }
    // An empty part counts as a broken answer.
    let last = chunks.pop().unwrap_or_else(|| chunk(answer, Vec::new()));
    chunks.push(with_end(last, answer));
    chunks
}

fn part(block: &Block) -> Option<Json> {
    match block {
        Block::Text { text } => Some(json!({ "text": text })),
        Block::Thinking { text, .. } => Some(json!({ "text": text, "thought": true })),
        Block::ToolCall(ToolCall { id, name, arguments }) => {
            Some(json!({ "functionCall": { "id": id, "name": name, "args": arguments_object(arguments) } }))
        }
        Block::Media(_) => None,
    }
}

fn chunk(answer: &Answer<'_>, parts: Vec<Json>) -> Json {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }],
        "modelVersion": answer.question.model, "responseId": answer.id("resp"),
    })
}

/// The last piece of an answer: why it ends, and its usage.
fn with_end(mut chunk: Json, answer: &Answer<'_>) -> Json {
    chunk["candidates"][0]["finishReason"] = match &answer.response.stop {
        StopReason::EndTurn | StopReason::ToolUse => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::Other(reason) => reason,
    }
    .into();
    let Usage { input_tokens, output_tokens, cache_read_tokens, .. } = answer.response.usage;
    chunk["usageMetadata"] = json!({
        "promptTokenCount": input_tokens, "candidatesTokenCount": output_tokens,
        "cachedContentTokenCount": cache_read_tokens, "totalTokenCount": input_tokens + output_tokens,
    });
    chunk
}

pub(super) fn error(status: u16, message: &str) -> Json {
    let name = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        408 | 504 => "DEADLINE_EXCEEDED",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        ..500 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    };
    json!({ "error": { "code": status, "message": message, "status": name } })
}

pub(super) fn models(name: &str) -> Json {
    let methods = ["generateContent", "streamGenerateContent", "countTokens"];
    json!({ "models": [{
        "name": format!("models/{name}"), "displayName": name, "supportedGenerationMethods": methods,
    }] })
}
