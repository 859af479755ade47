//! The connection is reset.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, Stop, options, stop_at};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "reset",
    summary: "The connection is reset (TCP RST) before the answer, or in the middle of it; a pipe is closed",
    options: &[("after", "after this many bytes of the response; by default before anything of the answer")],
    example: "reset: { after: 20 }",
    transports: EVERYWHERE,
    read: |node| Reset::read(node).map(Fault::Reset),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    after: Option<usize>,
}

impl Reset {
    fn read(node: &Node) -> Result<Reset, Problems> {
        Ok(Reset { after: options::read(&INFO, node)?.read("after", Node::bytes)? })
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        stop_at(self.after, Stop::Reset, part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;

    #[test]
    fn it_breaks_before_anything_or_after_some_of_the_response() {
        assert_eq!(apply("reset"), ["Stop(Reset)"]);
        assert_eq!(apply("reset: { after: 3 }")[5..], ["r cut (3, Reset)", "Stop(Finish)"]);
    }
}
