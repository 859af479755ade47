//! The result of a tool call, with every kind of content kept.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::malformed::{Malformed, check_content, check_result};

/// The result of a tool call; `raw` is the whole result as it came.
///
/// ```
/// use rehearse_client::ToolOutcome;
/// use serde_json::value::RawValue;
///
/// let result = r#"{"content": [{"type": "text", "text": "no such city"}], "isError": true}"#;
/// let outcome = ToolOutcome::parse(RawValue::from_string(result.to_owned())?)?;
/// assert_eq!((outcome.text(), outcome.is_error), ("no such city".to_owned(), true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ToolOutcome {
    /// The content blocks; empty if the result has no `content`, as with structured content only.
    pub content: Vec<Content>,
    /// The structured content.
    pub structured_content: Option<Box<RawValue>>,
    /// The `_meta` of the result.
    pub meta: Option<Box<RawValue>>,
    /// Whether the tool reports an error.
    pub is_error: bool,
    /// `complete`, `input_required` or another; absent before 2026-07-28.
    pub result_type: Option<String>,
    /// The whole result.
    pub raw: Box<RawValue>,
}

/// One block of content.
#[derive(Clone, Debug)]
pub enum Content {
    /// A text.
    Text {
        /// The text.
        text: String,
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// An image.
    Image {
        /// The media type.
        mime_type: String,
        /// Base64.
        data: String,
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// A sound.
    Audio {
        /// The media type.
        mime_type: String,
        /// Base64.
        data: String,
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// An embedded resource.
    Resource {
        /// The URI of the resource.
        uri: String,
        /// The media type of the resource.
        mime_type: Option<String>,
        /// Absent for binary resources.
        text: Option<String>,
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// A link to a resource.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// The name of the resource.
        name: String,
        /// The whole block.
        raw: Box<RawValue>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    content: Option<Vec<Box<RawValue>>>,
    structured_content: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Box<RawValue>>,
    is_error: Option<bool>,
    result_type: Option<String>,
}

impl ToolOutcome {
    /// Reads the result of a `tools/call`.
    ///
    /// # Errors
    /// Names the part that is missing or wrong.
    pub fn parse(raw: Box<RawValue>) -> Result<ToolOutcome, Malformed> {
        check_result("tools/call", &raw)?;
        let members: Members = serde_json::from_str(raw.get()).map_err(Malformed::from_error)?;
        let content: Result<_, _> = members.content.into_iter().flatten().map(Content::read).collect();
        Ok(ToolOutcome {
            content: content?,
            structured_content: members.structured_content,
            meta: members.meta,
            is_error: members.is_error.unwrap_or(false),
            result_type: members.result_type,
            raw,
        })
    }

    /// The text of all text blocks.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            Content::Text { text, .. } => Some(&**text),
            _ => None,
        });
        texts.collect()
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
    Resource { resource: Embedded },
    ResourceLink { uri: String, name: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
}

impl Content {
    /// A block as it came, of a tool, a prompt or a message.
    ///
    /// # Errors
    /// Names the part that is missing or wrong.
    pub fn parse(raw: Box<RawValue>) -> Result<Content, Malformed> {
        check_content(&raw)?;
        Content::read(raw)
    }

    /// A block that has been checked.
    fn read(raw: Box<RawValue>) -> Result<Content, Malformed> {
        Ok(match serde_json::from_str(raw.get()).map_err(Malformed::from_error)? {
            Block::Text { text } => Content::Text { text, raw },
            Block::Image { data, mime_type } => Content::Image { mime_type, data, raw },
            Block::Audio { data, mime_type } => Content::Audio { mime_type, data, raw },
            Block::Resource { resource: Embedded { uri, mime_type, text } } => {
                Content::Resource { uri, mime_type, text, raw }
            }
            Block::ResourceLink { uri, name } => Content::ResourceLink { uri, name, raw },
        })
    }

    /// The block as it came.
    pub fn raw(&self) -> &RawValue {
        match self {
            Content::Text { raw, .. }
            | Content::Image { raw, .. }
            | Content::Audio { raw, .. }
            | Content::Resource { raw, .. }
            | Content::ResourceLink { raw, .. } => raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ToolOutcome, Malformed> {
        ToolOutcome::parse(RawValue::from_string(text.to_owned()).expect("JSON"))
    }

    #[test]
    fn every_kind_of_content_is_distinguished_and_keeps_its_bytes() {
        let blocks = [
            r#"{"type":"text","text":"a", "x": 1.0}"#,
            r#"{"type":"image","data":"QQ==","mimeType":"image/png"}"#,
            r#"{"type":"audio","data":"QQ==","mimeType":"audio/wav"}"#,
            r#"{"type":"resource","resource":{"uri":"a://b","text":"t"}}"#,
            r#"{"type":"resource_link","uri":"a://b","name":"n"}"#,
            r#"{"type":"text","text":"b"}"#,
        ];
        let outcome = parse(&format!(r#"{{"content":[{}],"isError":true}}"#, blocks.join(","))).expect("a result");
        let kinds: Vec<_> = outcome
            .content
            .iter()
            .map(|content| match content {
                Content::Text { text, .. } => text.clone(),
                Content::Image { mime_type, .. } | Content::Audio { mime_type, .. } => mime_type.clone(),
                Content::Resource { uri, text, .. } => format!("{uri} {text:?}"),
                Content::ResourceLink { name, .. } => name.clone(),
            })
            .collect();
        assert_eq!(kinds, ["a", "image/png", "audio/wav", "a://b Some(\"t\")", "n", "b"]);
        assert!(outcome.content.iter().map(|content| content.raw().get()).eq(blocks));
        assert_eq!((outcome.text(), outcome.is_error), ("ab".to_owned(), true));
    }

    #[test]
    fn a_member_of_the_wrong_type_is_an_error() {
        assert!(parse(r#"{"content":{}}"#).is_err() && parse(r#"{"isError":"no"}"#).is_err() && parse("[]").is_err());
    }
}
