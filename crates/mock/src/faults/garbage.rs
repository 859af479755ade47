//! The response is replaced by something that is not a response.

use std::sync::Arc;

use bytes::Bytes;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Entry, Node, Problems, seeded_rng::SeededRng};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "garbage",
    summary: "The bytes of the response are replaced by others",
    options: &[
        (
            "random",
            "by this many random bytes without line ends; the seed decides. `garbage: random`: as many as the response has",
        ),
        ("invalid_utf8", "true, or `garbage: invalid_utf8`: the response stays, with invalid UTF-8 in its last text"),
        ("text", "by this text"),
    ],
    example: "garbage: { text: '<html>Bad Gateway</html>' }",
    transports: EVERYWHERE,
    read: |node| Garbage::read(node).map(Fault::Garbage),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// This number of bytes, or the length of the response.
    Random(Option<usize>),
    InvalidUtf8,
    Text(Arc<str>),
}

/// Bytes of which none is valid UTF-8: lead bytes without a continuation byte, and the reverse.
const INVALID: &[u8] = b"\xc3\x28\x80";

impl Garbage {
    fn read(node: &Node) -> Result<Garbage, Problems> {
        if options::is_scalar(node) {
            return match node.str()? {
                "random" => Ok(Garbage::Random(None)),
                "invalid_utf8" => Ok(Garbage::InvalidUtf8),
                _ => Err(node.problem("`garbage` must be `random`, `invalid_utf8` or `{ text: … }`").into()),
            };
        }
        match options::read(&INFO, node)?.at_most_one(&["random", "invalid_utf8", "text"])? {
            None => Ok(Garbage::Random(None)),
            Some(Entry { key, node, .. }) if key == "text" => Ok(Garbage::Text(node.str()?.into())),
            Some(Entry { key, node, .. }) if key == "random" => Ok(Garbage::Random(Some(node.bytes()?))),
            Some(Entry { node, .. }) => match node.bool()? {
                true => Ok(Garbage::InvalidUtf8),
                false => Err(node.problem("`invalid_utf8` must be true or absent").into()),
            },
        }
    }

    pub(super) fn apply(&self, mut part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if let ResponsePart::Packet(packet) = &mut part
            && packet.kind == FrameKind::Response
        {
            packet.bytes = match self {
                Garbage::Random(length) => random(length.unwrap_or(packet.bytes.len()), &mut state.rng),
                Garbage::InvalidUtf8 => invalid_utf8(&packet.bytes),
                Garbage::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            };
        }
        out.push(part);
    }
}

/// Random bytes that stay one line.
pub(super) fn random(length: usize, rng: &mut SeededRng) -> Bytes {
    let byte = || match rng.byte() {
        b'\n' | b'\r' => 0,
        byte => byte,
    };
    std::iter::repeat_with(byte).take(length).collect()
}

fn invalid_utf8(bytes: &Bytes) -> Bytes {
    let end = bytes.iter().rposition(|byte| *byte == b'"').unwrap_or(bytes.len());
    [&bytes[..end], INVALID, &bytes[end..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{RESPONSE, apply, error, parts, response};

    #[test]
    fn random_bytes_come_from_the_seed_and_are_one_line() {
        let garbage = response("garbage: random");
        assert_eq!(garbage.len(), RESPONSE.len());
        assert_eq!(garbage, response("garbage"));
        let long = response("garbage: { random: 5000 }");
        assert!(long.len() == 5000 && !long.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
        assert_ne!(parts("garbage", 1), parts("garbage", 2));
    }

    #[test]
    fn invalid_utf8_is_in_one_string_of_the_response() {
        let garbage = response("garbage: invalid_utf8");
        assert!(std::str::from_utf8(&garbage).is_err());
        let repaired = String::from_utf8_lossy(&garbage);
        let json: serde_json::Value = serde_json::from_str(&repaired).expect("JSON but for the encoding");
        assert!(json["result"]["text"].as_str().is_some_and(|text| text.starts_with("hello")), "{json}");
        assert_eq!(response("garbage: { invalid_utf8: true }"), garbage);
    }

    #[test]
    fn a_text_replaces_the_response_alone() {
        assert_eq!(apply("garbage: { text: <html> }")[4..], ["n3", "<html>", "Stop(Finish)"]);
        assert!(error("garbage: <html>").contains("`{ text: … }`"));
        assert!(error("garbage: { invalid_utf8: false }").contains("true or absent"));
    }
}
