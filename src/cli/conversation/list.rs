//! All messages of a file as a tree.

use std::collections::HashMap;

use crate::cli::style::{DIM, printable};
use rehearse_agent::store::MessageSummary;

/// How many bytes of a text are shown.
const MAX_TEXT: usize = 50;

/// One line for each message; where a conversation branches, the branches are indented.
pub(super) fn tree(messages: &[MessageSummary]) -> String {
    if messages.is_empty() {
        return "No messages found.\n".to_owned();
    }
    let positions: HashMap<_, _> = messages.iter().enumerate().map(|(index, it)| (it.id.as_str(), index)).collect();
    let parent = |message: &MessageSummary| positions.get(message.parent_id.as_deref()?).copied();
    let mut children = vec![Vec::new(); messages.len()];
    // What is shown next is at the end: roots are in it with the latest last.
    let mut open = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        match parent(message) {
            Some(parent) => children[parent].push(index),
            None => open.push((index, 0)),
        }
    }
    let mut text = String::new();
    while let Some((index, depth)) = open.pop() {
        let message = &messages[index];
        let is_labelled = parent(message).is_none_or(|parent| messages[parent].label != message.label);
        text.push_str(&" ".repeat(4 * depth));
        text.push_str(&line(message, message.label.as_deref().filter(|_| is_labelled)));
        let next = &children[index];
        if next.is_empty() {
            text.push_str(&" ".repeat(4 * depth));
            text.push_str("------\n");
        }
        let depth = if next.len() > 1 { depth + 1 } else { depth };
        open.extend(next.iter().rev().map(|next| (*next, depth)));
    }
    text
}

fn line(message: &MessageSummary, label: Option<&str>) -> String {
    let minute = message.created_at.get(..16).unwrap_or(&message.created_at).replace('T', " ");
    let shown: String = message.text.chars().map(|char| if char.is_whitespace() { ' ' } else { char }).collect();
    let text = &shown[..rehearse_document::text::boundary_before(&shown, MAX_TEXT)];
    let role = message.role.to_uppercase();
    let label = label.map(|label| format!(" {DIM}({}){DIM:#}", printable(label))).unwrap_or_default();
    let line = format!("{} ({minute}) [{role}] {text}", message.id);
    format!("{}{label}\n", printable(line.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, parent: Option<&str>, label: Option<&str>, text: &str) -> MessageSummary {
        MessageSummary {
            id: id.into(),
            parent_id: parent.map(str::to_owned),
            label: label.map(str::to_owned),
            role: if parent.is_some() { "assistant" } else { "user" }.into(),
            is_error: false,
            created_at: "2026-11-25 09:30:01".into(),
            text: text.into(),
        }
    }

    #[test]
    fn branches_are_indented_and_the_latest_conversation_is_first() {
        let messages = [
            message("a", None, None, "Fix\nit."),
            message("b", Some("a"), None, "one"),
            message("c", Some("a"), None, "two"),
            message("s", None, Some("subagent:coder:12345678"), &"ä".repeat(40)),
            message("d", Some("b"), None, ""),
            message("t", Some("s"), Some("subagent:coder:12345678"), "done\u{1b}[2J"),
        ];
        let shown = anstream::adapter::strip_str(&tree(&messages)).to_string();
        let time = "(2026-11-25 09:30)";
        let expected = [
            format!("s {time} [USER] {} (subagent:coder:12345678)", "ä".repeat(25)),
            format!("t {time} [ASSISTANT] done\\u{{1b}}[2J"),
            "------".to_owned(),
            format!("a {time} [USER] Fix it."),
            format!("    b {time} [ASSISTANT] one"),
            format!("    d {time} [ASSISTANT]"),
            "    ------".to_owned(),
            format!("    c {time} [ASSISTANT] two"),
            "    ------".to_owned(),
        ];
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
        assert_eq!(tree(&[]), "No messages found.\n");
    }
}
