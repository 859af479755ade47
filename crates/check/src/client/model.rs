//! A scripted model that calls the tools of an act.

use rehearse_document::Source;
use rehearse_llm::{
    endpoint::{EndpointOptions, ModelEndpoint},
    model::ScriptedModel,
};
use rehearse_mock::script::ScriptError;
use serde_json::{Value as Json, json};

use super::ClientError;

/// Serves a model that calls each of these tools once, with these arguments, and then ends its answer.
///
/// # Errors
/// It cannot be served.
pub(super) async fn start(tools: &[(String, Json)]) -> Result<ModelEndpoint, ClientError> {
    let source = Source::new("model", rules(tools).to_string());
    let model = ScriptedModel::parse(&source).map_err(ScriptError::Invalid)?;
    ModelEndpoint::start(model, EndpointOptions::default()).await.map_err(ClientError::Model)
}

fn rules(tools: &[(String, Json)]) -> Json {
    let named = |name: &str| format!("tools | select('endingwith', {}) | first", json!(name));
    let plain = tools.iter().find(|(_, arguments)| *arguments == json!({})).map_or("", |(name, _)| name);
    let call = |(name, arguments): &(String, Json)| {
        // Agents put the name of the server before that of the tool. A tool that they do not offer is for apps.
        let offered = format!("{{{{ {} | default({}) }}}}", named(name), named(plain));
        json!({ "calls": [{ "tool": offered, "args": arguments }] })
    };
    let mut turns: Vec<_> = tools.iter().map(call).collect();
    turns.push(json!("Done."));
    // A request without tools is about something else: a title, a summary.
    json!({ "model": "rehearse", "rules": [
        { "when": { "tools": [] }, "reply": "Done." },
        { "turns": turns },
        { "reply": "Done." },
    ] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_llm::{
        ToolDefinition,
        model::{GenerationOptions, Message, Request},
    };

    #[tokio::test]
    async fn the_model_calls_every_tool_by_the_name_that_the_agent_gives_it() {
        let known = [("it's", json!({})), ("for-apps", json!({ "text": "x" })), ("echo", json!({ "text": "x" }))];
        let known = known.map(|(name, arguments)| (name.to_owned(), arguments));
        let model = ScriptedModel::parse(&Source::new("model", rules(&known).to_string())).expect("a model");
        let options = GenerationOptions::default();
        let offered = ["mcp__act__echo", "mcp__act__it's"];
        let schema = serde_json::value::RawValue::NULL;
        let tool = |name| ToolDefinition { name, description: None, input_schema: schema, origin: None, examples: &[] };
        let offered = offered.map(tool);
        let mut messages = vec![Message::user("Work.")];
        // One that is not offered has another one in its place.
        for name in ["mcp__act__it's", "mcp__act__it's", "mcp__act__echo"] {
            let request = Request { system: None, messages: &messages, tools: &offered, options: &options };
            let answer = model.generate(&request, None).await.expect("an answer");
            let text = format!("{:?}", answer.content);
            assert!(text.contains(name), "{text}");
            messages.push(Message::Assistant { content: answer.content });
        }
        let request = Request { system: None, messages: &messages[..1], tools: &[], options: &options };
        let answer = model.generate(&request, None).await.expect("an answer");
        assert!(format!("{:?}", answer.content).contains("Done."), "{answer:?}");
    }
}
