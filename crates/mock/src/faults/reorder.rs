//! Messages come in another order.

use std::time::Duration;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, Stop, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "reorder",
    summary: "The response comes before its notifications, or after the next answer",
    options: &[
        ("response", "`first` (before the notifications of the answer, by default) or `after_next`"),
        ("limit", "with `after_next`: it comes after this time even if no other answer does, 5s by default"),
    ],
    example: "reorder: { response: after_next, limit: 2s }",
    transports: EVERYWHERE,
    read: |node| Reorder::read(node).map(Fault::Reorder),
};

const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reorder {
    /// The response comes before everything else.
    First,
    /// The response comes after another answer, unless none comes within this time.
    AfterNext(Duration),
}

impl Reorder {
    fn read(node: &Node) -> Result<Reorder, Problems> {
        if options::is_scalar(node) {
            return Reorder::read_kind(node, None);
        }
        let options = options::read(&INFO, node)?;
        let limit = options.get("limit");
        match (options.get("response"), limit) {
            (Some(kind), limit) => Reorder::read_kind(kind, limit),
            (None, Some(limit)) => Err(limit.problem("`limit` goes with `response: after_next`").into()),
            (None, None) => Ok(Reorder::First),
        }
    }

    fn read_kind(node: &Node, limit: Option<&Node>) -> Result<Reorder, Problems> {
        match (node.str()?, limit) {
            ("first", None) => Ok(Reorder::First),
            ("first", Some(limit)) => Err(limit.problem("`limit` goes with `response: after_next`").into()),
            ("after_next", limit) => Ok(Reorder::AfterNext(limit.map_or(Ok(LIMIT), Node::duration)?)),
            _ => Err(node.problem("the response must come `first` or `after_next`").into()),
        }
    }

    pub(super) fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        match (self, part) {
            (Reorder::AfterNext(limit), ResponsePart::Packet(packet)) if packet.kind == FrameKind::Response => {
                out.extend([ResponsePart::Yield(*limit), ResponsePart::Packet(packet)]);
            }
            // The client must answer a server request before there is a response.
            (Reorder::First, ResponsePart::Packet(packet)) if packet.kind == FrameKind::Notification => {
                state.held.push(ResponsePart::Packet(packet));
            }
            (_, ResponsePart::Stop(Stop::Finish)) => {
                out.append(&mut state.held);
                out.push(ResponsePart::Stop(Stop::Finish));
            }
            (_, part) => out.push(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error};

    #[test]
    fn the_response_comes_before_its_notifications() {
        assert_eq!(apply("reorder"), ["Begin", "q", "r", "n1", "n2", "n3", "Stop(Finish)"]);
        assert_eq!(apply("reorder: first"), apply("reorder: { response: first }"));
    }

    #[test]
    fn or_after_the_next_answer() {
        assert_eq!(apply("reorder: after_next")[4..], ["n3", "Yield(5s)", "r", "Stop(Finish)"]);
        assert_eq!(apply("reorder: { response: after_next, limit: 1s }")[5], "Yield(1s)");
        assert!(error("reorder: { limit: 1s }").contains("goes with `response: after_next`"));
        assert!(error("reorder: { response: first, limit: 1s }").contains("goes with `response: after_next`"));
        assert!(error("reorder: last").contains("`first` or `after_next`"));
    }
}
