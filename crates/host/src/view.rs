//! What the model saw of a server, and what the server got, as data.

use std::collections::HashMap;

use rehearse_protocol::{Answered, Direction, Trace};
use serde_json::{Map, Value, json};

use crate::{
    HostEvidence,
    judge::{answer, fullest, messages, result_of},
};

/// What the model saw, and what the server got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostView {
    /// The tools that the model saw, by their names in the server: `name`, `description` and `inputSchema`.
    pub tools: Map<String, Value>,
    /// The calls that the server got, in order: `tool`, `arguments`, `isError`, and `result`, the text that the model got.
    pub calls: Vec<Value>,
}

/// The tools that the server has listed to its host, each name once.
pub fn listed_tools(traces: &[Trace]) -> Vec<Value> {
    let mut tools: Vec<Value> = Vec::new();
    for answered in traces.iter().flat_map(Answered::all).filter(|answered| answered.method == "tools/list") {
        for tool in answered.result().iter().flat_map(|result| result["tools"].as_array()).flatten() {
            if !tools.iter().any(|known| known["name"] == tool["name"]) {
                tools.push(tool.clone());
            }
        }
    }
    tools
}

/// What came of the tools of the evidence, and of all calls.
pub fn view(evidence: &HostEvidence<'_>) -> HostView {
    let mut view = HostView::default();
    let asked = fullest(evidence);
    let shown = |name: &str| asked?.tool(evidence.server, name);
    for name in evidence.tools.iter().filter_map(|tool| tool["name"].as_str()) {
        let Some(tool) = shown(name) else { continue };
        let seen = json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.schema });
        view.tools.insert(name.to_owned(), seen);
    }
    let sent = messages(&evidence.outcome.traces);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let is_call = |message: &Value| message["method"] == "tools/call" && !message["id"].is_null();
    for call in sent.iter().filter(|it| it.direction == Direction::ClientToServer && is_call(&it.message)) {
        let tool = call.message["params"]["name"].as_str().unwrap_or_default();
        let mut seen = json!({ "tool": tool, "arguments": call.message["params"]["arguments"] });
        let count = counts.entry(tool).or_default();
        let result = shown(tool).and_then(|shown| result_of(evidence, &shown.name, *count));
        *count += 1;
        if let Some(answer) = answer(&sent, call) {
            seen["isError"] = (!answer["error"].is_null() || answer["result"]["isError"] == true).into();
        }
        if let Some(result) = result {
            seen["result"] = result.text.trim().into();
        }
        view.calls.push(seen);
    }
    view
}
