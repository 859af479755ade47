//! Members of the response are other ones.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, FrameKind, ResponsePart, options};
use rehearse_document::{Entry, Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "change",
    summary: "Members of the response have other values, or are missing",
    options: &[
        ("set", "values by JSON pointer; the object that gets one must exist"),
        ("remove", "JSON pointers of what is removed"),
    ],
    example: "change: { set: { /result/resultType: odd }, remove: [/result/_meta] }",
    transports: EVERYWHERE,
    read: |node| Change::read(node).map(Fault::Change),
};

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    set: Arc<[(String, Value)]>,
    remove: Arc<[String]>,
}

impl Change {
    fn read(node: &Node) -> Result<Change, Problems> {
        let options = options::read(&INFO, node)?;
        let set = options.get("set").map_or(Ok(&[][..]), Node::entries)?;
        let removed = |node: &Node| node.each(|it| Ok(it.str()?.to_owned()));
        Ok(Change {
            set: set.iter().map(|Entry { key, node, .. }| (key.clone(), node.to_json())).collect(),
            remove: options.read("remove", removed)?.unwrap_or_default().into(),
        })
    }

    pub(super) fn apply(&self, mut part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if let ResponsePart::Packet(packet) = &mut part
            && packet.kind == FrameKind::Response
            && let Ok(message) = serde_json::from_slice(&packet.bytes)
        {
            packet.bytes = self.changed(message);
        }
        out.push(part);
    }

    fn changed(&self, mut message: Value) -> Bytes {
        let set = self.set.iter().map(|(pointer, value)| (pointer, Some(value)));
        for (pointer, value) in set.chain(self.remove.iter().map(|pointer| (pointer, None))) {
            let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
            let key = key.replace("~1", "/").replace("~0", "~");
            if let Some(Value::Object(members)) = message.pointer_mut(parent) {
                match value {
                    Some(value) => drop(members.insert(key, value.clone())),
                    None => drop(members.remove(&key)),
                }
            }
        }
        message.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, error, response};

    #[test]
    fn members_of_the_response_are_set_or_removed() {
        let changed = response("change: { set: { /result/a~1b: [1], /none/c: 2 }, remove: [/result/text, /jsonrpc] }");
        let changed: serde_json::Value = serde_json::from_slice(&changed).expect("JSON");
        assert_eq!(changed, serde_json::json!({ "id": 7, "result": { "a/b": [1] } }));
        assert_eq!(apply("change: { set: { /id: 8 } }")[1], "n1");
        assert_eq!(response("[{ truncate: { after: 5 } }, { change: { remove: [/id] } }]"), "{\"jso");
        assert!(error("change: { remove: /id }").contains("expected an array"));
    }
}
