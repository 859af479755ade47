//! A conversation as Markdown.

use rehearse_agent::store::StoredMessage;
use rehearse_llm::model::{Block, Message, ToolCall};
use serde_json::{Value as Json, json};

/// A heading for each message, then its blocks.
pub(super) fn conversation(messages: &[StoredMessage]) -> String {
    let mut text = "# Conversation History\n".to_owned();
    let mut label = None;
    for (index, StoredMessage { id, message, label: of_message, .. }) in messages.iter().enumerate() {
        if index > 0 {
            text.push_str("\n---\n");
        }
        if label != of_message.as_ref() {
            label = of_message.as_ref();
            text.push_str(&label.map(|label| format!("\n_{label}_\n")).unwrap_or_default());
        }
        let who = match message {
            Message::User { .. } => "🧑 USER",
            Message::Assistant { .. } => "🤖 ASSISTANT",
            Message::ToolResult(result) if result.is_error => "🔧 TOOL RESULT ✗",
            Message::ToolResult(_) => "🔧 TOOL RESULT ✓",
        };
        text.push_str(&format!("\n## {who} [`{id}`]\n"));
        for block in message.content() {
            text.push_str(&format!("\n{}\n", self::block(block).trim_end_matches('\n')));
        }
    }
    text
}

fn block(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::Thinking { text, .. } if text.is_empty() => "> [Reasoning content is encrypted]".to_owned(),
        Block::Thinking { text, .. } => text.lines().map(|line| format!("> {line}\n")).collect(),
        Block::ToolCall(ToolCall { name, arguments, .. }) => {
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Json::from(arguments.as_str()));
            let call = json!({ "name": name, "parameters": arguments });
            format!("**Tool Call:**\n\n```json\n{call:#}\n```")
        }
        Block::Media(media) => match &media.name {
            Some(name) => format!("[{} content: {name}]", media.mime_type),
            None => format!("[{} content]", media.mime_type),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_llm::model::ToolResult;

    #[test]
    fn every_kind_of_block_has_its_form() {
        let call = ToolCall { id: "c".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into() };
        let thinking = Block::Thinking { text: "I see.\nI read.".into(), signature: None };
        let content = vec![Block::text("no such file\n")];
        let result = ToolResult { call_id: "c".into(), tool: "read".into(), content, is_error: true };
        let messages = [
            Message::user("Read a."),
            Message::Assistant { content: vec![thinking, Block::ToolCall(call)] },
            Message::ToolResult(result),
        ];
        let stored = messages.into_iter().zip(["a", "b", "c"]).map(|(message, id)| StoredMessage {
            id: id.into(),
            parent_id: None,
            label: Some("subagent:coder:12345678".into()),
            created_at: "2026-11-25 09:30:01".into(),
            message,
        });
        let expected = r#"# Conversation History

_subagent:coder:12345678_

## 🧑 USER [`a`]

Read a.

---

## 🤖 ASSISTANT [`b`]

> I see.
> I read.

**Tool Call:**

```json
{
  "name": "read",
  "parameters": {
    "path": "a"
  }
}
```

---

## 🔧 TOOL RESULT ✗ [`c`]

no such file
"#;
        assert_eq!(conversation(&stored.collect::<Vec<_>>()), expected);
    }
}
