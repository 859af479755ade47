//! The messages of a conversation with a model, independent of the provider.

use serde::{Deserialize, Serialize};

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User { content: Vec<Block> },
    Assistant { content: Vec<Block> },
    ToolResult(ToolResult),
}

/// The result of one tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool, as the model called it.
    pub tool: String,
    pub content: Vec<Block>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    /// What the model thought before it answered. Providers want it back unchanged.
    Thinking {
        text: String,
        /// The provider's proof that the text is the model's. Of thoughts that are encrypted, it is the provider's own
        /// form, as JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall(ToolCall),
    /// An image, a recording, a film or a document.
    Media(Media),
}

/// A call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the conversation.
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them: JSON text, if the model is right.
    pub arguments: String,
}

/// Data that is not text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    pub mime_type: String,
    /// Base64.
    pub data: String,
    /// The name of the file, for documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Why an answer ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model has said everything.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolUse,
    /// The answer was cut at the limit of tokens.
    MaxTokens,
    /// Another reason of the provider, such as `refusal`.
    Other(String),
}

/// How many tokens an answer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All that the model read, with those of the cache.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// How many of the input came from the provider's cache.
    pub cache_read_tokens: u64,
    /// How many of the input were written to it.
    pub cache_write_tokens: u64,
}

impl Message {
    /// A message of the user that is one text.
    pub fn user(text: impl Into<String>) -> Message {
        Message::User { content: vec![Block::text(text)] }
    }

    /// The parts of the message.
    pub fn content(&self) -> &[Block] {
        match self {
            Message::User { content } | Message::Assistant { content } => content,
            Message::ToolResult(result) => &result.content,
        }
    }

    /// All texts of the message, each on its own lines.
    pub fn text(&self) -> String {
        text_of(self.content())
    }

    /// The tool calls of a message of the assistant, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content().iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

impl Block {
    /// A text.
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into() }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

impl Usage {
    /// Input and output.
    pub fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

/// All texts of the blocks, each on its own lines.
pub fn text_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
