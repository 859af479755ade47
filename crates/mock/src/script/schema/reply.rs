//! Replies.

use serde_json::{Value as Json, json};

use super::build::{
    Definitions, Keys, any, choice, exactly_one, extend, keys, list_of, mapping, object, reference, template,
};

/// The subjects of answers; resource templates are answered as resources are.
pub(super) const SUBJECTS: [&str; 4] = ["tool", "resource", "prompt", "method"];

pub(super) fn definitions() -> Definitions {
    let mut definitions =
        vec![("rpcError".into(), rpc_error()), ("content".into(), content()), ("promptMessage".into(), message())];
    definitions.extend(SUBJECTS.map(|subject| (format!("{subject}Reply"), reply(subject))));
    definitions
}

fn reply(subject: &str) -> Json {
    let kinds = [keys_of(subject), common()].concat();
    let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    let meta = keys! {
        "_meta": mapping(), "Members of `_meta` in the result.", [{ "example.com/source": "cache" }];
    };
    let mut reply = extend(object(&[], [kinds, meta].concat()), exactly_one(&names));
    if names.contains(&"text") {
        reply["type"] = json!(["object", "string"]);
        if let Some(alternatives) = reply["oneOf"].as_array_mut() {
            alternatives.push(json!({ "type": "string" }));
        }
    }
    reply
}

/// The kinds of reply that only this subject has.
pub(super) fn keys_of(subject: &str) -> Keys {
    match subject {
        "tool" => keys! {
            "text": template(),
                "One text block. A string instead of the reply is short for it.", ["Hello {{ args.name }}"];
            "json": any(), "One text block with this data as JSON text.", [{ "city": "{{ args.city }}" }];
            "structured": any(), "Structured content, and the same as a text block.", [{ "celsius": 21 }];
            "content": list_of(reference("content")),
                "Content blocks as MCP has them.", [[{ "type": "text", "text": "Hello" }]];
            "error": template(), "A tool error with this text: a result with `isError`.", ["The disk is full."];
        },
        "resource" => keys! {
            "text": template(), "One content with this text.", ["Hello"];
            "json": any(), "One content with this data as JSON text.", [{ "theme": "dark" }];
            "blob": template(), "One content with these bytes, in base64.", ["aGVsbG8="];
            "contents": list_of(any()), "The contents as MCP has them.", [[{ "uri": "file:///a", "text": "Hello" }]];
        },
        "prompt" => keys! {
            "messages": list_of(reference("promptMessage")),
                "The messages of the prompt.", [[{ "role": "user", "content": "Hello" }]];
        },
        _ => Vec::new(),
    }
}

/// The kinds of reply that all subjects have.
fn common() -> Keys {
    keys! {
        "rpcError": reference("rpcError"), "A JSON-RPC error.", [{ "code": -32602, "message": "No such city" }];
        "result": mapping(), "The members of the result as they are written here; missing members that 2026-07-28 requires are added.", [{ "content": [] }];
        "raw": template(),
            "These bytes instead of a message.", ["{\"jsonrpc\":\"2.0\",\"id\":{{ id | tojson }},\"result\":{}}"];
    }
}

fn rpc_error() -> Json {
    object(
        &["code", "message"],
        keys! {
            "code": json!({ "type": "integer" }), "The JSON-RPC code.", [-32602];
            "message": template(), "What went wrong, in a sentence.", ["No such city: {{ args.city }}"];
            "data": any(), "Anything more about it.", [{ "city": "{{ args.city }}" }];
            "status": json!({ "type": "integer", "minimum": 200, "maximum": 599 }),
                "The HTTP status, instead of the one that the protocol has for the code.", [503];
        },
    )
}

fn message() -> Json {
    object(
        &["role", "content"],
        keys! {
            "role": choice(&["user", "assistant"]), "Who says it.", ["user"];
            "content": json!({ "type": ["string", "object"] }),
                "A string, or a content block as MCP has it.", ["Explain {{ args.topic }}"];
        },
    )
}

/// A content block. Future versions may have other types.
fn content() -> Json {
    let kinds = ["text", "image", "audio", "resource", "resource_link"];
    let needs = |kind: &str, members: &[&str]| {
        let condition = json!({ "properties": { "type": { "const": kind } }, "required": ["type"] });
        json!({ "if": condition, "then": { "required": members } })
    };
    let properties = object(
        &[],
        keys! {
            "type": json!({ "anyOf": [choice(&kinds), { "type": "string" }] }), "The kind of block.", ["text"];
            "text": any(), "The text of a `text` block.", ["Hello {{ args.name }}"];
            "data": any(), "The bytes of an `image` or `audio` block, in base64.", ["iVBORw0KGgo="];
            "mimeType": any(), "The type of the bytes.", ["image/png"];
            "resource": any(), "The contents of a `resource` block.", [{ "uri": "file:///a", "text": "Hello" }];
            "uri": any(), "Where a `resource_link` leads to.", ["file:///a"];
            "name": any(), "The name of a `resource_link`.", ["a"];
            "annotations": any(), "Hints for clients.", [{ "subscribers": ["user"] }];
            "_meta": any(), "Members of `_meta` in the block.", [{ "example.com/source": "cache" }];
        },
    );
    let all = [
        needs("text", &["text"]),
        needs("image", &["data", "mimeType"]),
        needs("audio", &["data", "mimeType"]),
        needs("resource", &["resource"]),
        needs("resource_link", &["uri", "name"]),
    ];
    json!({ "type": "object", "properties": properties["properties"], "required": ["type"], "allOf": all })
}
