//! The response is cut off, and looks finished.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "truncate",
    summary: "The response is cut off, and then goes on as if it were whole: with its line end, its Content-Length",
    options: &[("after", "after this many bytes")],
    example: "truncate: { after: 20 }",
    transports: EVERYWHERE,
    read: |node| Truncate::read(node).map(Fault::Truncate),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    after: usize,
}

impl Truncate {
    fn read(node: &Node) -> Result<Truncate, Problems> {
        Ok(Truncate { after: options::read(&INFO, node)?.required("after")?.bytes()? })
    }

    pub(super) fn apply(&self, mut part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if let ResponsePart::Packet(packet) = &mut part
            && packet.kind == FrameKind::Response
        {
            packet.bytes.truncate(self.after);
        }
        out.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{RESPONSE, apply, response};

    #[test]
    fn the_response_is_cut_but_is_a_whole_frame() {
        assert_eq!(response("truncate: { after: 9 }"), RESPONSE[..9]);
        assert_eq!(response("truncate: { after: 1kb }"), RESPONSE);
        assert_eq!(apply("truncate: { after: 1 }")[4..], ["n3", "{", "Stop(Finish)"]);
    }
}
