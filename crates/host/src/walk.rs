//! The script of a model that calls each tool once.

use rehearse_document::{Diagnostics, Source};
use rehearse_llm::model::ScriptedModel;
use serde_json::{Value, json};

/// A tool for the model to call.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkedTool {
    /// The server in the config of the host.
    pub server: String,
    /// The name of the tool in its server.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// A model that calls these tools, one after the other, and ends. What else a host asks of it, such as a title for the
/// conversation, has none of the tools, and gets a word.
///
/// # Errors
/// An argument has a template with a mistake: arguments of scripts are templates.
pub fn walk(tools: &[WalkedTool]) -> Result<ScriptedModel, Diagnostics> {
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let beside = json!({ "when": { "lacks": names }, "reply": "ok" });
    let calls = tools.iter().enumerate().map(|(number, WalkedTool { server, name, arguments })| {
        let call = json!({ "tool": name, "server": server, "args": arguments });
        json!({ "when": { "calls": number }, "reply": { "calls": [call] } })
    });
    let end = json!({ "reply": "done" });
    let beside = (!names.is_empty()).then_some(beside);
    let rules: Vec<_> = beside.into_iter().chain(calls).chain([end]).collect();
    // JSON is YAML.
    let source = Source::new("walk", json!({ "rules": rules }).to_string());
    ScriptedModel::parse(&source)
}
