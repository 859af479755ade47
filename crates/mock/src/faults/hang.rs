//! The answer never comes.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, Stop, options, stop_at};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "hang",
    summary: "The answer never comes, or never ends",
    options: &[("after", "after this many bytes of the response; by default before anything of the answer")],
    example: "hang: { after: 20 }",
    transports: EVERYWHERE,
    read: |node| Hang::read(node).map(Fault::Hang),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    after: Option<usize>,
}

impl Hang {
    fn read(node: &Node) -> Result<Hang, Problems> {
        Ok(Hang { after: options::read(&INFO, node)?.read("after", Node::bytes)? })
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        stop_at(self.after, Stop::Hang, part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;

    #[test]
    fn it_hangs_before_anything_or_after_some_of_the_response() {
        assert_eq!(apply("hang"), ["Stop(Hang)"]);
        assert_eq!(apply("hang: { after: 0 }")[4..], ["n3", "r cut (0, Hang)", "Stop(Finish)"]);
    }
}
