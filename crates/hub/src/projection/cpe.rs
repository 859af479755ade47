//! The message of blocks that cpe adds to its dialog (with the data model of its library gai).

use std::borrow::Cow;

use serde::Serialize;

use super::{Call, CallRejection, reason, structured_without_text};
use rehearse_client::{Content, Failure, ToolOutcome};

/// A tool result in a dialog. It has at least one block, because gai rejects a message without blocks.
#[derive(Clone, Debug, Serialize)]
pub struct Message<'a> {
    pub role: &'static str,
    pub tool_result_error: bool,
    pub blocks: Vec<Block<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Block<'a> {
    /// The id of the tool call.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub id: &'a str,
    pub block_type: &'static str,
    pub modality_type: Modality,
    pub mime_type: &'a str,
    /// Text, or base64.
    pub content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_fields: Option<Extra>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    Text,
    /// A PDF file is an image as well.
    Image,
    Audio,
}

/// Extra fields that gai requires for a PDF file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Extra {
    pub filename: &'static str,
}

/// Content that a dialog of cpe has no block for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error("cannot handle resource links in tool call result")]
    ResourceLink,
    #[error("cannot handle embedded resources in tool call result")]
    EmbeddedResource,
    /// gai rejects it.
    #[error("block {index} has image modality but non-image MIME type: {mime_type:?}")]
    NoImage { index: usize, mime_type: String },
}

impl<'a> Message<'a> {
    pub(super) fn new(call: &Call<'a>, result: Result<&'a ToolOutcome, &Failure>) -> Self {
        match result {
            Ok(outcome) => Message::from_outcome(call, outcome),
            Err(failure) => Message::error(call, called(call, reason(failure))),
        }
    }

    /// Content without a block becomes an error block; cpe itself ended the whole conversation there.
    fn from_outcome(call: &Call<'a>, outcome: &'a ToolOutcome) -> Self {
        let mut tool_result_error = outcome.is_error;
        let blocks = Block::list(call, outcome).map(|block| {
            block.unwrap_or_else(|unsupported| {
                tool_result_error = true;
                Block::text(call, called(call, unsupported))
            })
        });
        let blocks = blocks.collect();
        Message { role: "tool_result", tool_result_error, blocks }
    }

    /// Like cpe itself: content without a block ends the conversation.
    ///
    /// # Errors
    /// The first content item that has no block.
    pub fn strict(call: &Call<'a>, outcome: &'a ToolOutcome) -> Result<Self, Unsupported> {
        let blocks = Block::list(call, outcome).collect::<Result<_, _>>()?;
        Ok(Message { role: "tool_result", tool_result_error: outcome.is_error, blocks })
    }

    pub(super) fn rejected(call: &Call<'a>, rejection: &CallRejection) -> Self {
        let text = match rejection {
            CallRejection::InvalidArguments(why) => format!("Error parsing parameters: {why}"),
            CallRejection::UnknownTool => format!("tool '{}' not found", call.tool),
            rejection => called(call, rejection),
        };
        Message::error(call, text)
    }

    fn error(call: &Call<'a>, text: String) -> Self {
        Message { role: "tool_result", tool_result_error: true, blocks: vec![Block::text(call, text)] }
    }
}

fn called(call: &Call<'_>, error: impl std::fmt::Display) -> String {
    format!("Error calling MCP tool {}/{}: {error}", call.server, call.tool)
}

impl<'a> Block<'a> {
    /// One block per content item; a text block for structured content that no text repeats; an empty text block if
    /// there is nothing.
    fn list(call: &Call<'a>, outcome: &'a ToolOutcome) -> impl Iterator<Item = Result<Block<'a>, Unsupported>> {
        let call = *call;
        let content =
            outcome.content.iter().enumerate().map(move |(index, content)| Block::from_content(&call, index, content));
        let rest = match structured_without_text(outcome) {
            Some(structured) => Some(structured.get()),
            None => outcome.content.is_empty().then_some(""),
        };
        content.chain(rest.map(move |text| Ok(Block::text(&call, text))))
    }

    fn from_content(call: &Call<'a>, index: usize, content: &'a Content) -> Result<Block<'a>, Unsupported> {
        match content {
            Content::Text { text, .. } => Ok(Block::text(call, &**text)),
            Content::Image { mime_type, data, .. } => {
                let is_pdf = matches!(&**mime_type, "application/pdf" | "application/x-pdf");
                if !is_pdf && !mime_type.starts_with("image/") {
                    return Err(Unsupported::NoImage { index, mime_type: mime_type.clone() });
                }
                let block = Block::new(call, Modality::Image, mime_type, &**data);
                if is_pdf {
                    let extra_fields = Some(Extra { filename: "document.pdf" });
                    return Ok(Block { mime_type: "application/pdf", extra_fields, ..block });
                }
                Ok(block)
            }
            Content::Audio { mime_type, data, .. } => Ok(Block::new(call, Modality::Audio, mime_type, &**data)),
            Content::ResourceLink { .. } => Err(Unsupported::ResourceLink),
            Content::Resource { .. } => Err(Unsupported::EmbeddedResource),
        }
    }

    fn text(call: &Call<'a>, text: impl Into<Cow<'a, str>>) -> Block<'a> {
        Block::new(call, Modality::Text, "text/plain", text)
    }

    fn new(
        call: &Call<'a>,
        modality_type: Modality,
        mime_type: &'a str,
        content: impl Into<Cow<'a, str>>,
    ) -> Block<'a> {
        let content = content.into();
        Block { id: call.id, block_type: "content", modality_type, mime_type, content, extra_fields: None }
    }
}
