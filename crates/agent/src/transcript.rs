//! What happens in a run as text for people, in the forms of cpe.

use std::borrow::Cow;

use rehearse_llm::model::{Block, ToolCall, ToolResult};
use serde_json::Value as Json;

use crate::Event;

/// How many lines of a result are shown.
const MAX_LINES: usize = 20;

/// The text of an event; `None` if people do not need it.
pub fn text(event: &Event<'_>) -> Option<String> {
    match event {
        Event::ToolCall { call, timeout } => {
            let limit = timeout.map(|limit| format!(" (timeout: {}s)", limit.as_secs())).unwrap_or_default();
            Some(format!("#### [tool call]{limit}\n{}", tool_call(call)))
        }
        Event::ToolResult(result) => Some(tool_result(result)),
        Event::Thought { is_encrypted: true, .. } => Some("[Reasoning content is encrypted]\n".to_owned()),
        Event::Thought { text, .. } => Some(format!("{text}\n")),
        Event::Warning(text) => Some(format!("warning: {text}\n")),
        Event::Started | Event::Message(_) | Event::MessageSaved(_) | Event::Response(_) | Event::Ended { .. } => None,
    }
}

/// A call with its arguments, indented.
fn tool_call(call: &ToolCall) -> String {
    let arguments = serde_json::from_str::<Json>(&call.arguments);
    let arguments = arguments.unwrap_or_else(|_| Json::String(call.arguments.clone()));
    let call = serde_json::json!({ "name": call.name, "parameters": arguments });
    format!("```json\n{call:#}\n```\n")
}

/// A result with its first lines.
fn tool_result(result: &ToolResult) -> String {
    let parts = result.content.iter().map(|block| match block {
        Block::Text { text } | Block::Thinking { text, .. } => Cow::Borrowed(text.as_str()),
        Block::Media(media) => Cow::Owned(format!("[{} content]", media.mime_type)),
        Block::ToolCall(call) => Cow::Borrowed(call.name.as_str()),
    });
    let whole = parts.collect::<Vec<_>>().join("\n");
    let (language, shown) = match serde_json::from_str::<Json>(&whole) {
        Ok(json @ (Json::Object(_) | Json::Array(_))) => ("json", format!("{json:#}")),
        _ => ("", whole),
    };
    let mut lines = shown.lines();
    let mut text = lines.by_ref().take(MAX_LINES).collect::<Vec<_>>().join("\n");
    if lines.next().is_some() {
        text.push_str("\n... (truncated)");
    }
    let name = if result.tool.is_empty() { "unknown" } else { &result.tool };
    format!("#### Tool \"{name}\" result:\n```{language}\n{text}\n```\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> String {
        let content = vec![Block::text(text)];
        tool_result(&ToolResult { call_id: "1".into(), tool: "read".into(), content, is_error: false })
    }

    #[test]
    fn calls_and_results_have_the_forms_of_cpe() {
        let call = ToolCall { id: "1".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into() };
        let shown = text(&Event::ToolCall { call: &call, timeout: None }).expect("shown");
        let json = "{\n  \"name\": \"read\",\n  \"parameters\": {\n    \"path\": \"a\"\n  }\n}";
        assert_eq!(shown, format!("#### [tool call]\n```json\n{json}\n```\n"));
        assert_eq!(result("plain"), "#### Tool \"read\" result:\n```\nplain\n```\n");
        assert_eq!(result("[1]"), "#### Tool \"read\" result:\n```json\n[\n  1\n]\n```\n");
        let long = "line\n".repeat(25);
        assert_eq!(result(&long).lines().count(), 20 + 4);
        assert!(result(&long).ends_with("\n... (truncated)\n```\n"));
    }
}
