//! The response is sent again.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "duplicate",
    summary: "The response comes again",
    options: &[("times", "how often it comes in all, 2 by default and at most 100")],
    example: "duplicate: { times: 3 }",
    transports: EVERYWHERE,
    read: |node| Duplicate::read(node).map(Fault::Duplicate),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    times: u16,
}

impl Duplicate {
    fn read(node: &Node) -> Result<Duplicate, Problems> {
        let times = |node: &Node| match node.integer()? {
            0 | 1 => Err(node
                .problem("a response that comes once is not a fault")
                .hint("use the fault `drop` to send none")
                .into()),
            times @ 2..=100 => Ok(times),
            _ => Err(node.problem("a response can come at most 100 times").into()),
        };
        Ok(Duplicate { times: options::read(&INFO, node)?.read("times", times)?.unwrap_or(2) })
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        let is_response = matches!(&part, ResponsePart::Packet(packet) if packet.kind == FrameKind::Response);
        let times = if is_response { self.times } else { 1 };
        out.extend(std::iter::repeat_n(part, times.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error};

    #[test]
    fn the_response_comes_as_often_as_it_says() {
        assert_eq!(apply("duplicate")[4..], ["n3", "r", "r", "Stop(Finish)"]);
        assert_eq!(apply("duplicate: { times: 3 }")[5..], ["r", "r", "r", "Stop(Finish)"]);
        assert!(error("duplicate: { times: 1 }").contains("a response that comes once is not a fault"));
    }
}
