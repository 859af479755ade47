//! The rows of the blocks of a message.

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json, value::RawValue};

use rehearse_llm::model::{Block, Media, Message, ToolCall, ToolResult};

/// A row of the table `blocks`.
#[derive(Debug, Default)]
pub(super) struct BlockRow {
    /// The id of the call, for calls and results.
    id: Option<String>,
    kind: String,
    modality: i64,
    mime_type: String,
    content: String,
    extra: Option<Json>,
}

/// The content of a tool call.
#[derive(Serialize, Deserialize)]
struct StoredCall<'a> {
    name: String,
    #[serde(borrow)]
    parameters: &'a RawValue,
}

impl BlockRow {
    pub(super) const SELECT: &'static str = "SELECT id, block_type, modality_type, mime_type, content, extra_fields \
                                             FROM blocks WHERE message_id = ? ORDER BY sequence_order";

    pub(super) fn of_message(message: &Message) -> Vec<BlockRow> {
        let mut rows: Vec<_> = message.content().iter().map(BlockRow::of_block).collect();
        if let Message::ToolResult(result) = message {
            if rows.is_empty() {
                // The id of the call is in the blocks.
                rows.push(BlockRow::of_block(&Block::text("")));
            }
            rows.iter_mut().for_each(|row| row.id = Some(result.call_id.clone()));
        }
        rows
    }

    fn of_block(block: &Block) -> BlockRow {
        let text = |kind: &str, content: &str| BlockRow {
            kind: kind.to_owned(),
            mime_type: "text/plain".to_owned(),
            content: content.to_owned(),
            ..BlockRow::default()
        };
        match block {
            Block::Text { text: content } => text("content", content),
            Block::Thinking { text: content, signature } => BlockRow {
                extra: signature.as_ref().map(|signature| json!({ "signature": signature })),
                ..text("thinking", content)
            },
            Block::ToolCall(call) => {
                // What is not JSON is kept as a string.
                let arguments = match serde_json::from_str::<&RawValue>(&call.arguments) {
                    Ok(json) => json.get().to_owned(),
                    Err(_) => Json::from(&*call.arguments).to_string(),
                };
                let content = format!("{{\"name\":{},\"parameters\":{arguments}}}", Json::from(&*call.name));
                BlockRow { id: Some(call.id.clone()), ..text("tool_call", &content) }
            }
            Block::Media(media) => BlockRow {
                modality: modality(&media.mime_type),
                mime_type: media.mime_type.clone(),
                extra: media.name.as_ref().map(|name| json!({ "filename": name })),
                ..text("content", &media.data)
            },
        }
    }

    pub(super) fn insert(&self, connection: &Connection, message: &str, position: usize) -> rusqlite::Result<()> {
        let sql = "INSERT INTO blocks (id, message_id, block_type, modality_type, mime_type, content, extra_fields, \
                   sequence_order) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        let extra = self.extra.as_ref().map(Json::to_string);
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        let (kind, modality, mime_type) = (&self.kind, self.modality, &self.mime_type);
        let row = params![self.id, message, kind, modality, mime_type, self.content, extra, position];
        connection.execute(sql, row).map(drop)
    }

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<BlockRow> {
        let text = |index| row.get::<_, Option<String>>(index).map(Option::unwrap_or_default);
        let extra: Option<String> = row.get(5)?;
        Ok(BlockRow {
            id: row.get(0)?,
            kind: text(1)?,
            modality: row.get(2)?,
            mime_type: text(3)?,
            content: text(4)?,
            extra: extra.and_then(|extra| serde_json::from_str(&extra).ok()),
        })
    }

    pub(super) fn to_message(rows: Vec<BlockRow>, role: &str, is_error: bool) -> Message {
        let call_id = rows.iter().find_map(|row| row.id.clone()).unwrap_or_default();
        let content = rows.into_iter().map(BlockRow::into_block).collect();
        match role {
            "assistant" => Message::Assistant { content },
            "tool_result" => Message::ToolResult(ToolResult { call_id, tool: "unknown".to_owned(), content, is_error }),
            _ => Message::User { content },
        }
    }

    /// The block. What this program does not know is a text.
    fn into_block(self) -> Block {
        let extra = |key: &str| self.extra.as_ref().and_then(|extra| Some(extra.get(key)?.as_str()?.to_owned()));
        match &*self.kind {
            "thinking" => Block::Thinking { signature: extra("signature"), text: self.content },
            "tool_call" => match serde_json::from_str::<StoredCall<'_>>(&self.content) {
                Ok(StoredCall { name, parameters }) => {
                    let text = serde_json::from_str::<String>(parameters.get());
                    let arguments = text.unwrap_or_else(|_| parameters.get().to_owned());
                    Block::ToolCall(ToolCall { id: self.id.unwrap_or_default(), name, arguments })
                }
                Err(_) => Block::Text { text: self.content },
            },
            _ if self.modality == 0 => Block::Text { text: self.content },
            _ => Block::Media(Media { name: extra("filename"), mime_type: self.mime_type, data: self.content }),
        }
    }
}

/// 0 is text, 1 an image or a document, 2 audio, 3 video.
fn modality(mime_type: &str) -> i64 {
    match mime_type.split('/').next() {
        Some("audio") => 2,
        Some("video") => 3,
        _ => 1,
    }
}
