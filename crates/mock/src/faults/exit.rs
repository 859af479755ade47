//! The process exits.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, Stop, options, stop_at};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "exit",
    summary: "The server exits before the answer, or in the middle of it",
    options: &[
        ("code", "the exit code, 1 by default; `exit: 3` is short for `exit: { code: 3 }`"),
        ("after", "after this many bytes of the response; by default before anything of the answer"),
    ],
    example: "exit: { code: 3, after: 20 }",
    transports: EVERYWHERE,
    read: |node| Exit::read(node).map(Fault::Exit),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    code: u8,
    after: Option<usize>,
}

impl Exit {
    fn read(node: &Node) -> Result<Exit, Problems> {
        let code = |node: &Node| {
            node.integer().map_err(|_| node.problem("an exit code must be a whole number from 0 to 255").into())
        };
        if options::is_scalar(node) {
            return Ok(Exit { code: code(node)?, after: None });
        }
        let options = options::read(&INFO, node)?;
        Ok(Exit { code: options.read("code", code)?.unwrap_or(1), after: options.read("after", Node::bytes)? })
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        stop_at(self.after, Stop::Exit(self.code), part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error};

    #[test]
    fn it_dies_before_anything_or_after_some_of_the_response_or_all_of_it() {
        assert_eq!(apply("exit"), ["Stop(Exit(1))"]);
        assert_eq!(apply("exit: 3"), ["Stop(Exit(3))"]);
        assert_eq!(apply("exit: { code: 3, after: 9 }")[5..], ["r cut (9, Exit(3))", "Stop(Finish)"]);
        assert_eq!(apply("exit: { after: 1kb }")[5..], ["r", "Stop(Exit(1))"]);
        assert!(error("exit: 256").contains("from 0 to 255"));
    }
}
