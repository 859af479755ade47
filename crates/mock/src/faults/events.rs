//! The events of a stream are written in another way.

use std::sync::Arc;

use bytes::Bytes;

use super::{Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Node, Problems};
use rehearse_protocol::{Transport, sse::Event};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "events",
    summary: "The events of a stream are written in another way",
    options: &[
        ("before", "this text comes before each event, as it is; end it with an empty line"),
        ("lines", "how lines end: `lf`, `crlf` or `cr`"),
        ("bom", "true: the stream begins with a byte order mark; not on HTTP+SSE"),
        ("split", "true: the data has a line for each member of the message"),
        ("glued", "true: no space after the colons"),
        ("unfinished", "true: the empty line after the response is missing"),
    ],
    example: "events: { before: \": still here\\n\\n\", lines: crlf }",
    transports: &[Transport::Http, Transport::Sse],
    read: |node| Events::read(node).map(Fault::Events),
};

/// How events are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    before: Arc<str>,
    lines: Lines,
    bom: bool,
    split: bool,
    glued: bool,
    unfinished: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lines {
    #[default]
    Lf,
    Crlf,
    Cr,
}

impl Events {
    fn read(node: &Node) -> Result<Events, Problems> {
        let options = options::read(&INFO, node)?;
        let flag = |name: &str| Ok::<_, Problems>(options.read(name, Node::bool)?.unwrap_or(false));
        let lines = |node: &Node| match node.str()? {
            "lf" => Ok(Lines::Lf),
            "crlf" => Ok(Lines::Crlf),
            "cr" => Ok(Lines::Cr),
            _ => Err(node.problem("`lines` must be `lf`, `crlf` or `cr`").into()),
        };
        Ok(Events {
            before: options.read("before", Node::str)?.unwrap_or_default().into(),
            lines: options.read("lines", lines)?.unwrap_or_default(),
            bom: flag("bom")?,
            split: flag("split")?,
            glued: flag("glued")?,
            unfinished: flag("unfinished")?,
        })
    }

    pub(super) fn apply(&self, mut part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if let ResponsePart::Packet(packet) = &mut part {
            state.passed += 1;
            let is_response = packet.kind == FrameKind::Response;
            let bom = self.bom && state.passed == 1;
            let unfinished = self.unfinished && is_response;
            let own = Events { bom, unfinished, ..self.clone() };
            packet.events = Some(Arc::new(match packet.events.take() {
                Some(earlier) => own.after(&earlier),
                None => own,
            }));
        }
        out.push(part);
    }

    /// Both ways; the later one decides how lines end.
    fn after(self, earlier: &Events) -> Events {
        Events {
            before: format!("{}{}", earlier.before, self.before).into(),
            lines: if self.lines == Lines::Lf { earlier.lines } else { self.lines },
            bom: self.bom || earlier.bom,
            split: self.split || earlier.split,
            glued: self.glued || earlier.glued,
            unfinished: self.unfinished || earlier.unfinished,
        }
    }

    /// The bytes of an event. The data comes first, because a mark at the beginning spoils the first line only.
    pub fn encode(&self, event: &Event, is_first: bool) -> Bytes {
        let data = event.data.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let data = if self.split { data.replace(",\"", ",\n\"") } else { data.into_owned() };
        let fields = data.split('\n').map(|line| ("data", line));
        let fields = fields.chain(event.event.as_deref().map(|name| ("event", name)));
        let fields = fields.chain(event.id.as_deref().map(|id| ("id", id)));
        let colon = if self.glued { ":" } else { ": " };
        let lines: String = fields.map(|(name, value)| format!("{name}{colon}{value}\n")).collect();
        // A reader may wait for what follows the last carriage return.
        let end = match (self.unfinished, self.lines) {
            (true, _) => "",
            (false, Lines::Cr) => "\n:\n",
            (false, _) => "\n",
        };
        let text = format!("{}{lines}{end}", self.before);
        let text = match self.lines {
            Lines::Lf => text,
            Lines::Crlf => text.replace('\n', "\r\n"),
            Lines::Cr => text.replace('\n', "\r"),
        };
        let mark = if self.bom && is_first { "\u{feff}" } else { "" };
        format!("{mark}{text}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{error, parts},
        *,
    };

    /// The events of an answer, without the data of all but the response.
    fn written(text: &str) -> String {
        let packets = parts(text, 1).into_iter().filter_map(|part| match part {
            ResponsePart::Packet(packet) => Some(packet),
            _ => None,
        });
        let encoded = packets.map(|packet| {
            let data = if packet.kind == FrameKind::Response { "{\"a\":1,\"b\":2}" } else { "n" };
            let event = Event { id: Some("1".into()), ..Event::message(data.into()) };
            packet.events.expect("a way").encode(&event, true)
        });
        let encoded: Vec<_> = encoded.collect();
        String::from_utf8_lossy(&[encoded[0].clone(), encoded[4].clone()].concat()).into_owned()
    }

    #[test]
    fn events_are_written_in_other_ways_that_mean_the_same() {
        assert_eq!(written("events: { bom: true }"), "\u{feff}data: n\nid: 1\n\ndata: {\"a\":1,\"b\":2}\nid: 1\n\n");
        assert_eq!(written("events: { split: true, glued: true }")[13..], *"data:{\"a\":1,\ndata:\"b\":2}\nid:1\n\n");
        assert_eq!(
            written("events: { before: \": x\\n\", lines: crlf }")[..27],
            *": x\r\ndata: n\r\nid: 1\r\n\r\n: x\r"
        );
        assert!(written("events: { lines: cr }").starts_with("data: n\rid: 1\r\r:\rdata: {"));
        assert!(written("events: { unfinished: true }").ends_with("n\nid: 1\n\ndata: {\"a\":1,\"b\":2}\nid: 1\n"));
        let several = written(
            "[{ events: { before: \": x\\n\", lines: crlf } }, { events: { before: \": y\\n\", glued: true } }]",
        );
        assert_eq!(several[..26], *": x\r\n: y\r\ndata:n\r\nid:1\r\n\r\n");
        assert!(error("events: { lines: no }").contains("`lines` must be `lf`, `crlf` or `cr`"));
    }
}
