//! Recorded answers as replies of a script, and what happened before them as steps.

use rehearse_conformance::{Call, Connection};
use rehearse_document::template::without_templates;
use rehearse_protocol::names::PREFIX;
use serde_json::{Map, Value, json};

/// The reply to a call of a tool, of the kind that says it shortest.
pub(super) fn tool_reply(result: &Value) -> Value {
    let mut result = plain(result);
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    if result.get("isError") == Some(&Value::Bool(false)) {
        result.remove("isError");
    }
    let keys: Vec<_> = result.keys().map(String::as_str).collect();
    let text = match result["content"].as_array().map(Vec::as_slice) {
        Some([block]) if block["type"] == "text" && block.as_object().is_some_and(|it| it.len() == 2) => {
            block["text"].as_str()
        }
        _ => None,
    };
    let structured = result.get("structuredContent");
    let reply = match (&keys[..], text, structured) {
        (["content"], Some(text), _) => json!({ "text": text }),
        (["content", "isError"] | ["isError", "content"], Some(text), _) if is_error => json!({ "error": text }),
        (["content", "structuredContent"] | ["structuredContent", "content"], Some(text), Some(structured))
            if serde_json::from_str::<Value>(text).is_ok_and(|text| text == *structured) =>
        {
            json!({ "structured": structured })
        }
        (["content"], None, _) => json!({ "content": result["content"] }),
        _ => json!({ "result": result }),
    };
    without_templates(reply)
}

/// The reply to a read of a resource.
pub(super) fn resource_reply(uri: &str, result: &Value) -> Value {
    let contents = result["contents"].as_array().cloned().unwrap_or_default();
    let reply = match &contents[..] {
        [content] if content["uri"] == uri && content["text"].is_string() => json!({ "text": content["text"] }),
        [content] if content["uri"] == uri && content["blob"].is_string() => json!({ "blob": content["blob"] }),
        _ => json!({ "contents": contents }),
    };
    without_templates(reply)
}

/// The reply to a prompt.
pub(super) fn prompt_reply(result: &Value) -> Value {
    without_templates(json!({ "messages": result["messages"] }))
}

/// The reply of any other method.
pub(super) fn method_reply(result: &Value) -> Value {
    without_templates(json!({ "result": plain(result) }))
}

/// The reply of an error.
pub(super) fn error_reply(error: &Value) -> Value {
    without_templates(json!({ "rpcError": error }))
}

/// A result without what the mock adds by itself.
fn plain(result: &Value) -> Map<String, Value> {
    let mut result = result.as_object().cloned().unwrap_or_default();
    result.remove("resultType");
    if let Some(Value::Object(meta)) = result.get_mut("_meta") {
        meta.retain(|key, _| !key.starts_with(PREFIX));
        if meta.is_empty() {
            result.remove("_meta");
        }
    }
    result
}

/// What the server sent on the way to an answer. What a script cannot say is named in `lost`.
pub(super) fn steps(connection: &Connection<'_>, call: &Call<'_>, lost: &mut Vec<String>) -> Vec<Value> {
    let token = &call.request.params()["_meta"]["progressToken"];
    let mut steps = Vec::new();
    for message in connection.on_the_way(call) {
        let params = message.params();
        match message.method() {
            Some("notifications/progress") if params["progressToken"] == *token && !token.is_null() => {
                steps.push(json!({ "progress": members(params, &["progress", "total", "message"]) }));
            }
            Some("notifications/message") => {
                steps.push(json!({ "log": members(params, &["level", "logger", "data"]) }));
            }
            Some(method) if message.id().is_some() => steps.extend(question(method, params, lost)),
            Some(method) => lost.push(format!("{method} before an answer")),
            None => {}
        }
    }
    steps.into_iter().map(without_templates).collect()
}

/// The questions of a modern result of type `input_required`, as steps.
pub(super) fn questions(result: &Value, lost: &mut Vec<String>) -> Vec<Value> {
    let requests = result["inputRequests"].as_object().into_iter().flatten();
    let steps = requests.filter_map(|(_, it)| question(it["method"].as_str()?, &it["params"], lost));
    steps.map(without_templates).collect()
}

/// A request to the client as a step.
fn question(method: &str, params: &Value, lost: &mut Vec<String>) -> Option<Value> {
    match method {
        "elicitation/create" => {
            let keys = ["mode", "message", "requestedSchema", "url"];
            let mut elicit = members(params, &keys);
            if elicit["mode"] == "form" {
                elicit.as_object_mut()?.remove("mode");
            }
            Some(json!({ "elicit": elicit }))
        }
        "sampling/createMessage" => {
            let keys = ["messages", "maxTokens", "systemPrompt", "temperature", "stopSequences", "modelPreferences"];
            Some(
                json!({ "sample": members(params, &[&keys[..], &["includeContext", "metadata", "tools", "toolChoice"]].concat()) }),
            )
        }
        "roots/list" => Some(json!({ "roots": {} })),
        "ping" => None,
        method => {
            lost.push(format!("the request {method} of the server"));
            None
        }
    }
}

/// Some members of an object, in this order.
pub(super) fn members(value: &Value, keys: &[&str]) -> Value {
    keys.iter().filter_map(|key| Some(((*key).to_owned(), value.get(*key)?.clone()))).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_becomes_its_shortest_reply() {
        let text = |text: &str| json!([{ "type": "text", "text": text }]);
        for (result, reply) in [
            (json!({ "content": text("a"), "isError": false, "resultType": "complete" }), json!({ "text": "a" })),
            (json!({ "content": text("a"), "isError": true }), json!({ "error": "a" })),
            (
                json!({ "content": text(r#"{"a": 1}"#), "structuredContent": { "a": 1 } }),
                json!({ "structured": { "a": 1 } }),
            ),
            (json!({ "content": [] }), json!({ "content": [] })),
            (
                json!({ "content": text("a"), "_meta": { "k": 1 } }),
                json!({ "result": { "content": text("a"), "_meta": { "k": 1 } } }),
            ),
            (json!({ "content": text("{{ x }} {% {") }), json!({ "text": "{{ '{{' }} x }} {{ '{%' }} {" })),
        ] {
            assert_eq!(tool_reply(&result), reply);
        }
    }
}
