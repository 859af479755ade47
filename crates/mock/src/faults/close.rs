//! The connection is closed too early.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, Stop, options, stop_at};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "close",
    summary: "The stream or connection is closed in order, but before the answer or in the middle of it",
    options: &[
        ("after", "after this many bytes of the response; by default before anything of the answer"),
        ("code", "the close code of a WebSocket, 1000 by default"),
    ],
    example: "close: { after: 20, code: 1011 }",
    transports: EVERYWHERE,
    read: |node| Close::read(node).map(Fault::Close),
};

/// The default close code (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    after: Option<usize>,
    code: u16,
}

impl Close {
    fn read(node: &Node) -> Result<Close, Problems> {
        let options = options::read(&INFO, node)?;
        let code = |node: &Node| match node.integer()? {
            // The others must not appear in a close frame (RFC 6455, 7.4).
            code @ (1000..=1003 | 1007..=1014 | 3000..=4999) => Ok(code),
            _ => Err(node
                .problem("not a close code of a WebSocket")
                .hint("1000 to 1003, 1007 to 1014 and 3000 to 4999 can be sent")
                .into()),
        };
        Ok(Close { after: options.read("after", Node::bytes)?, code: options.read("code", code)?.unwrap_or(NORMAL) })
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        stop_at(self.after, Stop::Close(self.code), part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error};

    #[test]
    fn it_closes_before_anything_or_after_some_of_the_response() {
        assert_eq!(apply("close"), ["Stop(Close(1000))"]);
        assert_eq!(apply("close: { after: 3, code: 4001 }")[5..], ["r cut (3, Close(4001))", "Stop(Finish)"]);
    }

    #[test]
    fn a_code_that_no_close_frame_has_is_a_mistake() {
        for code in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
            assert!(error(&format!("close: {{ code: {code} }}")).contains("not a close code"), "{code}");
        }
    }
}
