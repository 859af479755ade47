//! rmcp as an independent witness: its clients meet our mocks, our sessions meet its servers, in both eras.

#![expect(deprecated, reason = "rmcp marks what 2026-07-28 is about to remove")]

// The example uses the facade, of which this is the part that it needs.
extern crate self as mcp_rehearsal;

mod catalog;
mod clients;
#[expect(dead_code, unreachable_pub, reason = "it is the root of its own program")]
#[path = "../../../../examples/rmcp_test.rs"]
mod example;
mod generated;
mod servers;

use rehearse_check as check;
use rehearse_client as client;
use rehearse_document as document;
use rehearse_fuzz as fuzz;
use rehearse_mock as mock;
use rehearse_protocol as protocol;
use rehearse_rmcp_bridge as rmcp_bridge;
use rehearse_scenario as scenario;

use rehearse_protocol::{Era, Version};
use serde_json::{Value, json};

/// The newest version of each era.
const VERSIONS: [Version; 2] = [Version::LATEST_LEGACY, Version::LATEST];

/// Whether `found` has everything that `expected` has: further members of objects do not count.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| found.get(key).is_some_and(|it| has(it, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| has(found, expected))
        }
        _ => found == expected,
    }
}

/// A request, and what comes back.
struct Exchange {
    method: &'static str,
    params: Value,
    /// The type of rmcp that has the result.
    kind: &'static str,
    result: Value,
    /// The only era that has the method.
    era: Option<Era>,
}

/// Every request of a client but those that open a connection or a subscription, and those for tasks that must exist first.
fn exchanges() -> Vec<Exchange> {
    let content = json!([
        { "type": "text", "text": "a & b" },
        { "type": "image", "data": "QQ==", "mimeType": "image/png" },
        { "type": "audio", "data": "QQ==", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "page://1", "name": "page" },
        { "type": "resource", "resource": { "uri": "page://1", "text": "One" } },
    ]);
    let resources = json!([
        { "uri": "page://1", "name": "page" },
        { "uri": "skill://refunds/SKILL.md", "name": "refunds", "mimeType": "text/markdown" },
        { "uri": "skill://refunds/references/policy.md", "name": "policy.md", "mimeType": "text/markdown" },
    ]);
    let skill = json!({
        "uri": "skill://refunds/SKILL.md",
        "frontmatter": { "name": "refunds", "description": "Process refunds." },
        "resources": [
            { "uri": "skill://refunds/SKILL.md", "digest": "sha256:57dde7888f254ece95922c3b5426aab1207641448b5946626a9e33726e69ca39", "size": 52 },
            { "uri": "skill://refunds/references/policy.md", "digest": "sha256:0b45f863b160a60ca4de26814308e8fbf0cff588d0804de56765d6beba80baf9", "size": 22 },
        ],
    });
    let all = [
        (
            "tools/list",
            json!({}),
            "ListToolsResult",
            json!({ "tools": [{ "name": "show", "description": "Shows.", "inputSchema": { "type": "object" } }] }),
            None,
        ),
        (
            "tools/call",
            json!({ "name": "show", "arguments": { "a": 1 } }),
            "CallToolResult",
            json!({ "content": content, "structuredContent": { "a": 1 }, "isError": false }),
            None,
        ),
        ("resources/list", json!({}), "ListResourcesResult", json!({ "resources": resources }), None),
        (
            "resources/templates/list",
            json!({}),
            "ListResourceTemplatesResult",
            json!({ "resourceTemplates": [{ "uriTemplate": "page://{number}", "name": "page" }] }),
            None,
        ),
        (
            "resources/read",
            json!({ "uri": "page://1" }),
            "ReadResourceResult",
            json!({ "contents": [{ "uri": "page://1", "text": "One" }] }),
            None,
        ),
        (
            "prompts/list",
            json!({}),
            "ListPromptsResult",
            json!({ "prompts": [{ "name": "greet", "arguments": [{ "name": "who", "required": true }] }] }),
            None,
        ),
        (
            "prompts/get",
            json!({ "name": "greet", "arguments": { "who": "Ada" } }),
            "GetPromptResult",
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "Greet Ada" } }] }),
            None,
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "who", "value": "a" } }),
            "CompleteResult",
            json!({ "completion": { "values": ["Ada"], "total": 1, "hasMore": false } }),
            None,
        ),
        ("skills/list", json!({}), "ListSkillsResult", json!({ "skills": [skill] }), Some(Era::Modern)),
        (
            "skills/get",
            json!({ "uri": "skill://refunds/SKILL.md" }),
            "GetSkillResult",
            json!({ "skill": skill }),
            Some(Era::Modern),
        ),
        (
            "resources/directory/read",
            json!({ "uri": "skill://refunds/references" }),
            "ListResourcesResult",
            json!({ "resources": [{ "uri": "skill://refunds/references/policy.md", "name": "policy.md" }] }),
            Some(Era::Modern),
        ),
        // rmcp answers a ping that is the first request of a connection in every version.
        ("ping", json!({}), "EmptyResult", json!({}), Some(Era::Legacy)),
        ("logging/setLevel", json!({ "level": "warning" }), "EmptyResult", json!({}), Some(Era::Legacy)),
        ("resources/subscribe", json!({ "uri": "page://1" }), "EmptyResult", json!({}), Some(Era::Legacy)),
        ("resources/unsubscribe", json!({ "uri": "page://1" }), "EmptyResult", json!({}), Some(Era::Legacy)),
        ("example/visit", json!({ "by": "Ada" }), "CustomResult", json!({ "visits": 1 }), None),
    ];
    let exchange = |(method, params, kind, result, era)| Exchange { method, params, kind, result, era };
    all.into_iter().map(exchange).collect()
}
