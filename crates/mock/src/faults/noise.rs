//! A line that is not a message comes before the answer.

use std::{iter, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, Packet, ResponsePart, garbage::random, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "noise",
    summary: "Before the response comes something that is not a message: a line, an event, a WebSocket message",
    options: &[
        ("text", "this text; `noise: TEXT` is short for `noise: { text: TEXT }`"),
        ("random", "this many random bytes without line ends instead, which the seed decides"),
        ("glued", "true: not a line of its own, but directly before the response"),
        ("times", "so often, 1 by default"),
        ("pause", "how long the response then waits, 0 by default"),
    ],
    example: "noise: { text: 'npm warn deprecated', glued: false }",
    transports: EVERYWHERE,
    read: |node| InjectedOutput::read(node).map(Fault::Noise),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedOutput {
    bytes: InjectedBytes,
    glued: bool,
    times: u16,
    pause: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum InjectedBytes {
    Text(Arc<str>),
    Random(usize),
}

impl InjectedOutput {
    fn read(node: &Node) -> Result<InjectedOutput, Problems> {
        if options::is_scalar(node) {
            let bytes = InjectedBytes::Text(node.str()?.into());
            return Ok(InjectedOutput { bytes, glued: false, times: 1, pause: Duration::ZERO });
        }
        let options = options::read(&INFO, node)?;
        let bytes = match options.at_most_one(&["text", "random"])? {
            Some(entry) if entry.key == "random" => InjectedBytes::Random(options::some_bytes(&entry.node)?),
            Some(entry) => InjectedBytes::Text(entry.node.str()?.into()),
            None => InjectedBytes::Text("Server listening on stdio".into()),
        };
        Ok(InjectedOutput {
            bytes,
            glued: options.read("glued", Node::bool)?.unwrap_or(false),
            times: options.read("times", Node::integer)?.unwrap_or(1),
            pause: options.read("pause", Node::duration)?.unwrap_or_default(),
        })
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
                false => {
                    let noise = ResponsePart::Packet(Packet::new(FrameKind::Unsolicited, noise));
                    out.extend(iter::repeat_n(noise, self.times.into()));
                }
            }
            if !self.pause.is_zero() {
                out.push(ResponsePart::Wait(self.pause));
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
        let often = apply("noise: { text: boo, times: 2, pause: 5ms }");
        assert_eq!(often[4..], ["n3", "boo", "boo", "Wait(5ms)", "r", "Stop(Finish)"]);
        let random = response("noise: { random: 9, glued: true }");
        assert!(random.len() == RESPONSE.len() + 9 && random.ends_with(RESPONSE.as_bytes()));
    }

    #[test]
    fn it_is_a_text_or_random() {
        assert!(error("noise: { text: a, random: 3 }").contains("both `text` and `random`"));
        assert!(error("noise: 5").contains("put it in quotes"));
    }
}
