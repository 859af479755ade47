//! The response has another id.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "wrong_id",
    summary: "The response has another id than the request",
    options: &[
        ("id", "this id, of any type; default: another of the same type"),
        ("as", "`other`, `type` (1 becomes \"1\") or `missing`; `wrong_id: type` is short for it"),
    ],
    example: "wrong_id: type",
    transports: EVERYWHERE,
    read: |node| WrongId::read(node).map(Fault::WrongId),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongId {
    /// Another one of the same type.
    Other,
    /// The same text or number as the other type.
    Type,
    Missing,
    /// This JSON text.
    Json(Arc<str>),
}

/// The distance to the other number: no client has sent this many requests.
const FAR: i64 = 1_000_000;

impl WrongId {
    fn read(node: &Node) -> Result<WrongId, Problems> {
        if options::is_scalar(node) {
            return WrongId::read_kind(node);
        }
        Ok(match options::read(&INFO, node)?.at_most_one(&["id", "as"])? {
            None => WrongId::Other,
            Some(entry) if entry.key == "id" => WrongId::Json(entry.node.to_json_text().into()),
            Some(entry) => WrongId::read_kind(&entry.node)?,
        })
    }

    fn read_kind(node: &Node) -> Result<WrongId, Problems> {
        match node.str() {
            Ok("other") => Ok(WrongId::Other),
            Ok("type") => Ok(WrongId::Type),
            Ok("missing") => Ok(WrongId::Missing),
            _ => Err(node
                .problem("`wrong_id` must be `other`, `type` or `missing`")
                .hint("a certain one is `wrong_id: { id: null }`")
                .into()),
        }
    }

    pub(super) fn apply(&self, mut part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if let ResponsePart::Packet(packet) = &mut part
            && packet.kind == FrameKind::Response
            && let Some(changed) = self.replace_id(&packet.bytes)
        {
            packet.bytes = changed;
        }
        out.push(part);
    }

    /// The bytes with the other id, otherwise unchanged; `None` if they have no id.
    fn replace_id(&self, bytes: &Bytes) -> Option<Bytes> {
        #[derive(Deserialize)]
        struct Response<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let id = serde_json::from_slice::<Response<'_>>(bytes).ok()?.id.get();
        // The id is a part of the bytes.
        let start = (id.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)?;
        let (before, after) = (&bytes[..start], &bytes[start + id.len()..]);
        let other = match self {
            WrongId::Other => other_id(id),
            WrongId::Type => other_type(id),
            WrongId::Json(json) => json.to_string(),
            WrongId::Missing => return Some(without_member(before, after)),
        };
        Some([before, other.as_bytes(), after].concat().into())
    }
}

fn other_id(id: &str) -> String {
    match (id.parse::<i64>(), id.strip_suffix('"')) {
        (Ok(number), _) => number.wrapping_add(FAR).to_string(),
        (_, Some(text)) => format!("{text}-other\""),
        _ => "\"other\"".into(),
    }
}

fn other_type(id: &str) -> String {
    match serde_json::from_str::<String>(id) {
        Ok(text) => text.parse::<i64>().unwrap_or(0).to_string(),
        Err(_) => format!("\"{id}\""),
    }
}

/// Removes the member `"id":` that ends `before`, and one comma next to it.
fn without_member(before: &[u8], after: &[u8]) -> Bytes {
    let key = before.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    let before = key.and_then(|it| it.strip_suffix(b"\"id\"")).unwrap_or(before).trim_ascii_end();
    match (after.trim_ascii_start().strip_prefix(b","), before.strip_suffix(b",")) {
        (Some(after), _) => [before, after].concat().into(),
        (None, Some(before)) => [before, after].concat().into(),
        (None, None) => [before, after].concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{error, fault, response},
        *,
    };

    fn id(text: &str, frame: &'static str) -> String {
        let faults = fault(text).expect(text);
        let [Fault::WrongId(wrong)] = &faults[..] else { panic!("{text}") };
        wrong
            .replace_id(&Bytes::from_static(frame.as_bytes()))
            .map_or_else(String::new, |it| String::from_utf8_lossy(&it).into())
    }

    #[test]
    fn only_the_id_of_the_response_is_another() {
        assert_eq!(response("wrong_id"), r#"{"jsonrpc":"2.0","id":1000007,"result":{"text":"hello"}}"#);
        assert_eq!(response("wrong_id: type"), r#"{"jsonrpc":"2.0","id":"7","result":{"text":"hello"}}"#);
        assert_eq!(response("wrong_id: { id: null }"), r#"{"jsonrpc":"2.0","id":null,"result":{"text":"hello"}}"#);
        assert_eq!(response("wrong_id: missing"), r#"{"jsonrpc":"2.0","result":{"text":"hello"}}"#);
        assert_eq!(response("wrong_id: { as: other }"), response("wrong_id"));
        assert!(error("wrong_id: 5").contains("`wrong_id: { id: null }`"));
    }

    #[test]
    fn ids_of_both_types_are_changed_at_any_position() {
        assert_eq!(id("wrong_id", r#"{"id":"a"}"#), r#"{"id":"a-other"}"#);
        assert_eq!(id("wrong_id: type", r#"{"id":"12"}"#), r#"{"id":12}"#);
        assert_eq!(id("wrong_id: type", r#"{"id":"a"}"#), r#"{"id":0}"#);
        assert_eq!(id("wrong_id: missing", r#"{"result":{}, "id" : 1 }"#), r#"{"result":{} }"#);
        assert_eq!(id("wrong_id: missing", r#"{"id":1}"#), "{}");
        assert_eq!(id("wrong_id", "no JSON"), "");
    }
}
