//! The response is large.

use bytes::{BufMut, BytesMut};

use super::{About, EVERYWHERE, Fault, Item, Kind, read};
use crate::config::{Node, Problems};

pub(super) const ABOUT: About = About {
    name: "oversize",
    summary: "The response is padded to a size, with spaces before its last brace",
    options: &[("size", "in bytes; `oversize: 40MB` is short for `oversize: { size: 40MB }`")],
    example: "oversize: 40MB",
    transports: EVERYWHERE,
    read: |node| Oversize::read(node).map(Fault::Oversize),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversize {
    size: usize,
}

impl Oversize {
    fn read(node: &Node) -> Result<Oversize, Problems> {
        let node = if read::is_scalar(node) { node } else { read::options(&ABOUT, node)?.required("size")? };
        Ok(Oversize { size: read::some_bytes(node)? })
    }

    pub(super) fn apply(&self, mut item: Item, out: &mut Vec<Item>) {
        if let Item::Packet(packet) = &mut item
            && packet.kind == Kind::Response
            && let Some(missing) = self.size.checked_sub(packet.bytes.len())
        {
            let (text, end) = packet.bytes.split_at(packet.bytes.len() - usize::from(packet.bytes.ends_with(b"}")));
            let mut padded = BytesMut::with_capacity(self.size);
            padded.put_slice(text);
            padded.put_bytes(b' ', missing);
            padded.put_slice(end);
            packet.bytes = padded.freeze();
        }
        out.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{RESPONSE, response};

    #[test]
    fn the_response_is_padded_and_means_the_same() {
        let large = response("oversize: 100KB");
        assert_eq!(large.len(), 100_000);
        let json = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON");
        assert_eq!(json(&large), json(RESPONSE.as_bytes()));
        assert_eq!(response("oversize: { size: 5 }"), RESPONSE, "it is never made smaller");
        assert_eq!(response("[{ truncate: { after: 3 } }, { oversize: 5 }]"), "{\"j  ");
    }
}
