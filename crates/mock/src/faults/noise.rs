//! A line that is not a message comes before the answer.

use bytes::Bytes;
use std::sync::Arc;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, Packet, ResponsePart, garbage::random, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "noise",
    summary: "Before the response comes something that is not a message: a line, an event, a WebSocket message",
    options: &[
        ("text", "this text; `noise: TEXT` is short for `noise: { text: TEXT }`"),
        ("random", "so many random bytes without line ends instead, which the seed decides"),
        ("glued", "true: not a line of its own, but directly before the response"),
    ],
    example: "noise: { text: 'npm warn deprecated', glued: false }",
    transports: EVERYWHERE,
    read: |node| InjectedOutput::read(node).map(Fault::Noise),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedOutput {
    bytes: InjectedBytes,
    glued: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum InjectedBytes {
    Text(Arc<str>),
    Random(usize),
}

impl InjectedOutput {
    fn read(node: &Node) -> Result<InjectedOutput, Problems> {
        if options::is_scalar(node) {
            return Ok(InjectedOutput { bytes: InjectedBytes::Text(node.str()?.into()), glued: false });
        }
        let options = options::read(&INFO, node)?;
        let bytes = match options.at_most_one(&["text", "random"])? {
            Some(entry) if entry.key == "random" => InjectedBytes::Random(options::some_bytes(&entry.node)?),
            Some(entry) => InjectedBytes::Text(entry.node.str()?.into()),
            None => InjectedBytes::Text("Server listening on stdio".into()),
        };
        Ok(InjectedOutput { bytes, glued: options.read("glued", Node::bool)?.unwrap_or(false) })
    }

    pub(super) fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        let ResponsePart::Packet(mut response) = part else { return out.push(part) };
        if response.kind == FrameKind::Response {
            let noise = match &self.bytes {
                InjectedBytes::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
                InjectedBytes::Random(length) => random(*length, &mut state.rng),
            };
            match self.glued {
                true => response.bytes = [noise, response.bytes].concat().into(),
                false => out.push(ResponsePart::Packet(Packet::new(FrameKind::Unsolicited, noise))),
            }
        }
        out.push(ResponsePart::Packet(response));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{RESPONSE, apply, error, response};

    #[test]
    fn it_is_a_frame_before_the_response_or_glued_to_it() {
        assert_eq!(apply("noise: boo")[4..], ["n3", "boo", "r", "Stop(Finish)"]);
        assert_eq!(response("noise: { text: 'Debug: ', glued: true }"), format!("Debug: {RESPONSE}"));
        assert_eq!(apply("noise").len(), 8);
        let random = response("noise: { random: 9, glued: true }");
        assert!(random.len() == RESPONSE.len() + 9 && random.ends_with(RESPONSE.as_bytes()));
    }

    #[test]
    fn it_is_a_text_or_random() {
        assert!(error("noise: { text: a, random: 3 }").contains("both `text` and `random`"));
        assert!(error("noise: 5").contains("put it in quotes"));
    }
}
