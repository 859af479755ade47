//! Messages are lost.

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Node, Problems, Value};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "drop",
    summary: "The response is not sent, or some of the notifications before it",
    options: &[
        ("response", "true: the response, which is what `drop` means by default"),
        ("notifications", "true: all notifications; `{ every: 2 }`: every second one"),
    ],
    example: "drop: { notifications: { every: 2 } }",
    transports: EVERYWHERE,
    read: |node| Drop::read(node).map(Fault::Drop),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    response: bool,
    /// Each notification whose number is a multiple of this.
    every: Option<u64>,
}

impl Drop {
    fn read(node: &Node) -> Result<Drop, Problems> {
        if options::is_scalar(node) {
            return match node.str()? {
                "response" => Ok(Drop { response: true, every: None }),
                "notifications" => Ok(Drop { response: false, every: Some(1) }),
                _ => Err(node.problem("`drop` must be `response` or `notifications`").into()),
            };
        }
        let options = options::read(&INFO, node)?;
        if options.is_empty() {
            return Ok(Drop { response: true, every: None });
        }
        let response = options.read("response", Node::bool)?.unwrap_or(false);
        let every = options.read("notifications", read_every)?.flatten();
        if !response && every.is_none() {
            return Err(node.problem("this drops nothing").hint("`drop: {}` drops the response").into());
        }
        Ok(Drop { response, every })
    }

    pub(super) fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        let is_lost = match &part {
            ResponsePart::Packet(packet) if packet.kind == FrameKind::Response => self.response,
            ResponsePart::Packet(packet) if packet.kind == FrameKind::Notification => {
                state.passed += 1;
                self.every.is_some_and(|every| state.passed.is_multiple_of(every))
            }
            _ => false,
        };
        if !is_lost {
            out.push(part);
        }
    }
}

fn read_every(node: &Node) -> Result<Option<u64>, Problems> {
    match &node.value {
        Value::Bool(all) => Ok(all.then_some(1)),
        Value::Mapping(_) => {
            let every = node.fields("`notifications`", &["every"])?.required("every")?;
            match every.integer()? {
                0 => Err(every.problem("`every: 1` is every notification, `every: 2` every second one").into()),
                every => Ok(Some(every)),
            }
        }
        _ => Err(node.problem("`notifications` must be true, or for example `{ every: 2 }`").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error};

    #[test]
    fn the_response_or_every_so_many_notifications_get_lost() {
        assert_eq!(apply("drop"), ["Begin", "n1", "n2", "q", "n3", "Stop(Finish)"]);
        assert_eq!(apply("drop: { response: true }"), apply("drop: response"));
        assert_eq!(apply("drop: notifications"), ["Begin", "q", "r", "Stop(Finish)"]);
        assert_eq!(apply("drop: { notifications: { every: 2 } }"), ["Begin", "n1", "q", "n3", "r", "Stop(Finish)"]);
        assert_eq!(apply("drop: { notifications: true, response: true }"), ["Begin", "q", "Stop(Finish)"]);
        assert!(error("drop: { notifications: { every: 0 } }").contains("every second one"));
        assert!(error("drop: { response: false }").contains("this drops nothing"));
        assert!(error("drop: all").contains("`response` or `notifications`"));
    }
}
