//! A script that calls each tool once.

use rehearse_document::{Diagnostics, Source};
use serde_json::{Value, json};

use super::ScriptedModel;

/// A tool for the model to call.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkedTool {
    /// The server in the config of the host; empty for the one that has the tool.
    pub server: String,
    /// The name of the tool in its server.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// A model that calls these tools, one after the other, and ends. In place of one that is not offered, it calls one without
/// arguments, if there is such a tool. What else a host asks of it, such as a title for the conversation, has none of the
/// tools, and gets a word.
///
/// # Errors
/// A name or an argument has a template with a mistake: those of scripts are templates.
pub fn walk(tools: &[WalkedTool]) -> Result<ScriptedModel, Diagnostics> {
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let call = |WalkedTool { server, name, arguments }: &WalkedTool| {
        let mut call = json!({ "tool": name, "args": arguments });
        if !server.is_empty() {
            call["server"] = json!(server);
        }
        json!({ "calls": [call] })
    };
    let plain = tools.iter().find(|tool| tool.arguments == json!({}));
    let beside = (!names.is_empty()).then(|| json!({ "when": { "lacks": names }, "reply": "ok" }));
    let calls = tools.iter().enumerate().flat_map(|(number, tool)| {
        let instead = plain.map(|it| json!({ "when": { "calls": number, "lacks": [tool.name] }, "reply": call(it) }));
        instead.into_iter().chain([json!({ "when": { "calls": number }, "reply": call(tool) })])
    });
    let rules: Vec<_> = beside.into_iter().chain(calls).chain([json!({ "reply": "done" })]).collect();
    // JSON is YAML.
    ScriptedModel::parse(&Source::new("walk", json!({ "rules": rules }).to_string()))
}
