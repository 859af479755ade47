//! The HTTP response has another media type.

use std::sync::Arc;

use http::HeaderValue;

use super::{Fault, FaultInfo, FaultState, ResponsePart, options};
use rehearse_document::{Node, Problems};
use rehearse_protocol::Transport;

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "content_type",
    summary: "The HTTP response has another Content-Type, or none",
    options: &[("type", "the media type, or `none`; `content_type: text/html` is short for it")],
    example: "content_type: text/html",
    transports: &[Transport::Http],
    read: |node| ContentType::read(node).map(Fault::ContentType),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentType(Arc<str>);

impl ContentType {
    fn read(node: &Node) -> Result<ContentType, Problems> {
        let node = if options::is_scalar(node) { node } else { options::read(&INFO, node)?.required("type")? };
        match node.str()? {
            "none" => Ok(ContentType("".into())),
            text if !text.is_empty() && HeaderValue::from_str(text).is_ok() => Ok(ContentType(text.into())),
            _ => Err(node.problem("not a valid Content-Type").hint("write a media type, or `none`").into()),
        }
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if part == ResponsePart::Begin {
            out.push(ResponsePart::ContentType(self.0.clone()));
        }
        out.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error};

    #[test]
    fn the_head_is_known_before_the_answer_begins() {
        assert_eq!(apply("content_type: text/html")[..2], [r#"ContentType("text/html")"#, "Begin"]);
        assert_eq!(apply("content_type: { type: none }")[0], r#"ContentType("")"#);
        assert!(error("content_type: ''").contains("write a media type, or `none`"));
    }
}
