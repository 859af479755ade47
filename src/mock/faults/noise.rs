//! Something that is no message comes before the answer.

use bytes::Bytes;
use std::sync::Arc;

use super::{About, EVERYWHERE, Fault, Item, Kind, Packet, Run, garbage::random, read};
use crate::config::{Node, Problems};

pub(super) const ABOUT: About = About {
    name: "noise",
    summary: "Before the response comes what is no message: a line, an event, a WebSocket message",
    options: &[
        ("text", "this text; `noise: TEXT` is short for `noise: { text: TEXT }`"),
        ("random", "so many random bytes without line ends instead, which the seed decides"),
        ("glued", "true: it is no line of its own, but stands right before the response"),
    ],
    example: "noise: { text: 'npm warn deprecated', glued: false }",
    transports: EVERYWHERE,
    read: |node| Noise::read(node).map(Fault::Noise),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    sound: Sound,
    glued: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sound {
    Text(Arc<str>),
    Random(usize),
}

impl Noise {
    fn read(node: &Node) -> Result<Noise, Problems> {
        if read::is_scalar(node) {
            return Ok(Noise { sound: Sound::Text(node.str()?.into()), glued: false });
        }
        let options = read::options(&ABOUT, node)?;
        let sound = match options.at_most_one(&["text", "random"])? {
            Some(entry) if entry.key == "random" => Sound::Random(read::some_bytes(&entry.node)?),
            Some(entry) => Sound::Text(entry.node.str()?.into()),
            None => Sound::Text("Server listening on stdio".into()),
        };
        Ok(Noise { sound, glued: options.read("glued", Node::bool)?.unwrap_or(false) })
    }

    pub(super) fn apply(&self, item: Item, run: &mut Run, out: &mut Vec<Item>) {
        let Item::Packet(mut response) = item else { return out.push(item) };
        if response.kind == Kind::Response {
            let noise = match &self.sound {
                Sound::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
                Sound::Random(length) => random(*length, &mut run.draws),
            };
            match self.glued {
                true => response.bytes = [noise, response.bytes].concat().into(),
                false => out.push(Item::Packet(Packet::new(Kind::Noise, noise))),
            }
        }
        out.push(Item::Packet(response));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{RESPONSE, error, play, response};

    #[test]
    fn it_is_a_frame_before_the_response_or_glued_to_it() {
        assert_eq!(play("noise: boo")[4..], ["n3", "boo", "r", "Stop(Finish)"]);
        assert_eq!(response("noise: { text: 'Debug: ', glued: true }"), format!("Debug: {RESPONSE}"));
        assert_eq!(play("noise").len(), 8);
        let random = response("noise: { random: 9, glued: true }");
        assert!(random.len() == RESPONSE.len() + 9 && random.ends_with(RESPONSE.as_bytes()));
    }

    #[test]
    fn it_is_a_text_or_random() {
        assert!(error("noise: { text: a, random: 3 }").contains("both `text` and `random`"));
        assert!(error("noise: 5").contains("put it in quotes"));
    }
}
