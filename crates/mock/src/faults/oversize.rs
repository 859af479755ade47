//! The response is large.

use bytes::{BufMut, BytesMut};

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
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
        let node = if options::is_scalar(node) { node } else { options::read(&INFO, node)?.required("size")? };
        Ok(Oversize { size: options::some_bytes(node)? })
    }

    pub(super) fn apply(&self, mut part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if let ResponsePart::Packet(packet) = &mut part
            && packet.kind == FrameKind::Response
            && let Some(missing) = self.size.checked_sub(packet.bytes.len())
        {
            let (text, end) = packet.bytes.split_at(packet.bytes.len() - usize::from(packet.bytes.ends_with(b"}")));
            let mut padded = BytesMut::with_capacity(self.size);
            padded.put_slice(text);
            padded.put_bytes(b' ', missing);
            padded.put_slice(end);
            packet.bytes = padded.freeze();
        }
        out.push(part);
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
