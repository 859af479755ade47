//! What a file has, without the contents.

use std::collections::HashMap;

use rusqlite::Row;
use serde::Serialize;

/// A message in a file, without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSummary {
    pub id: String,
    pub parent_id: Option<String>,
    /// `subagent:NAME:RUNID` for messages of a subagent.
    pub label: Option<String>,
    /// `user`, `assistant` or `tool_result`.
    pub role: String,
    /// Whether it is the result of a tool that failed.
    pub is_error: bool,
    /// `2026-11-25 09:30:00`, in UTC.
    pub created_at: String,
    /// The first text; empty if there is none.
    pub text: String,
}

/// A conversation in a file: a message without successor, and all before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationSummary {
    /// The id of the last message.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it began, `2026-11-25 09:30:00` in UTC.
    pub created_at: String,
    /// The number of messages.
    pub messages: usize,
    /// The first text of the first message.
    pub text: String,
}

impl MessageSummary {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<MessageSummary> {
        Ok(MessageSummary {
            id: row.get(0)?,
            parent_id: row.get(1)?,
            label: row.get(2)?,
            role: row.get(3)?,
            is_error: row.get(4)?,
            created_at: row.get(5)?,
            text: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        })
    }
}

impl ConversationSummary {
    /// The conversations that these messages form, the latest first.
    pub fn of_messages(messages: &[MessageSummary]) -> Vec<ConversationSummary> {
        // The first message of each conversation, and the number so far.
        let mut begun: HashMap<&str, (&MessageSummary, usize)> = HashMap::new();
        let mut continued: HashMap<&str, ()> = HashMap::new();
        for message in messages {
            let before = message.parent_id.as_deref().and_then(|parent| begun.get(parent)).copied();
            let (first, count) = before.unwrap_or((message, 0));
            begun.insert(&message.id, (first, count + 1));
            message.parent_id.as_deref().map(|parent| continued.insert(parent, ()));
        }
        let last = messages.iter().rev().filter(|message| !continued.contains_key(&*message.id));
        let summary = |last: &MessageSummary| {
            let (first, count) = begun.get(&*last.id).copied()?;
            Some(ConversationSummary {
                id: last.id.clone(),
                label: last.label.clone(),
                created_at: first.created_at.clone(),
                messages: count,
                text: first.text.clone(),
            })
        };
        last.filter_map(summary).collect()
    }
}
