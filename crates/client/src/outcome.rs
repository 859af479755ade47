//! The result of a tool call, with every kind of content kept.

use serde::Deserialize;
use serde_json::value::RawValue;

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

/// One block of content. A block that lacks a required member is `Other`.
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
        name: Option<String>,
        /// The whole block.
        raw: Box<RawValue>,
    },
    /// Any other block.
    Other {
        /// The block's `type`, empty if it has none.
        kind: String,
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
    #[serde(default)]
    is_error: bool,
    result_type: Option<String>,
}

impl ToolOutcome {
    /// Reads the result of a `tools/call`.
    ///
    /// # Errors
    /// Names the member that is missing or has the wrong type.
    pub fn parse(raw: Box<RawValue>) -> Result<ToolOutcome, String> {
        let members: Members =
            serde_json::from_str(raw.get()).map_err(|error| format!("no result of a tool call: {error}"))?;
        let is_complete = members.result_type.as_deref().is_none_or(|kind| kind == "complete");
        if is_complete && members.content.is_none() && members.structured_content.is_none() {
            return Err("no result of a tool call: missing field `content`".to_owned());
        }
        Ok(ToolOutcome {
            content: members.content.into_iter().flatten().map(Content::parse).collect(),
            structured_content: members.structured_content,
            meta: members.meta,
            is_error: members.is_error,
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

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Block {
    r#type: String,
    text: Option<String>,
    data: Option<String>,
    mime_type: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    resource: Option<Embedded>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
}

#[derive(Deserialize, Default)]
struct Kind {
    #[serde(default)]
    r#type: String,
}

impl Content {
    /// A block as it came, of a tool, a prompt or a message.
    pub fn parse(raw: Box<RawValue>) -> Content {
        let Ok(block) = serde_json::from_str::<Block>(raw.get()) else {
            let kind = serde_json::from_str::<Kind>(raw.get()).unwrap_or_default().r#type;
            return Content::Other { kind, raw };
        };
        match block {
            Block { r#type, text: Some(text), .. } if r#type == "text" => Content::Text { text, raw },
            Block { r#type, data: Some(data), mime_type: Some(mime_type), .. } if r#type == "image" => {
                Content::Image { mime_type, data, raw }
            }
            Block { r#type, data: Some(data), mime_type: Some(mime_type), .. } if r#type == "audio" => {
                Content::Audio { mime_type, data, raw }
            }
            Block { r#type, resource: Some(Embedded { uri, mime_type, text }), .. } if r#type == "resource" => {
                Content::Resource { uri, mime_type, text, raw }
            }
            Block { r#type, uri: Some(uri), name, .. } if r#type == "resource_link" => {
                Content::ResourceLink { uri, name, raw }
            }
            Block { r#type: kind, .. } => Content::Other { kind, raw },
        }
    }

    /// The block as it came.
    pub fn raw(&self) -> &RawValue {
        match self {
            Content::Text { raw, .. }
            | Content::Image { raw, .. }
            | Content::Audio { raw, .. }
            | Content::Resource { raw, .. }
            | Content::ResourceLink { raw, .. }
            | Content::Other { raw, .. } => raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ToolOutcome, String> {
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
            r#"{"type":"hologram"}"#,
            r#"{"type":"text","text":5}"#,
            r#"7"#,
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
                Content::ResourceLink { name, .. } => format!("{name:?}"),
                Content::Other { kind, .. } => format!("other {kind}"),
            })
            .collect();
        let expected = ["a", "image/png", "audio/wav", "a://b Some(\"t\")", "Some(\"n\")"];
        assert_eq!(kinds[..5], expected);
        assert_eq!(kinds[5..], ["other hologram", "other text", "other ", "b"]);
        assert!(outcome.content.iter().map(|content| content.raw().get()).eq(blocks));
        assert_eq!((outcome.text(), outcome.is_error), ("ab".to_owned(), true));
    }

    #[test]
    fn a_result_without_content_is_one_that_asks_for_input() {
        let outcome = parse(r#"{"resultType":"input_required","inputRequests":{}}"#).expect("a result");
        assert_eq!((outcome.content.len(), outcome.result_type.as_deref()), (0, Some("input_required")));
        assert!(outcome.raw.get().contains("inputRequests"));
    }

    #[test]
    fn a_member_of_the_wrong_type_is_an_error() {
        assert!(parse(r#"{"content":{}}"#).is_err() && parse(r#"{"isError":"no"}"#).is_err() && parse("[]").is_err());
    }
}
