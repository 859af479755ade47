//! The answer comes slowly.

use std::time::Duration;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "drip",
    summary: "The bytes of the answer come a few at a time; on a WebSocket as fragments",
    options: &[("bytes", "how many at a time, 16 by default"), ("every", "the pause between them, 10ms by default")],
    example: "drip: { bytes: 8, every: 5ms }",
    transports: EVERYWHERE,
    read: |node| Drip::read(node).map(Fault::Drip),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drip {
    bytes: usize,
    every: Duration,
}

impl Drip {
    fn read(node: &Node) -> Result<Drip, Problems> {
        let options = options::read(&INFO, node)?;
        Ok(Drip {
            bytes: options.read("bytes", options::some_bytes)?.unwrap_or(16),
            every: options.read("every", Node::duration)?.unwrap_or(Duration::from_millis(10)),
        })
    }

    pub(super) fn apply(&self, part: ResponsePart, _: &mut FaultState, out: &mut Vec<ResponsePart>) {
        out.push(match part {
            ResponsePart::Packet(mut packet) => {
                packet.drip = Some((self.bytes, self.every));
                ResponsePart::Packet(packet)
            }
            part => part,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;

    #[test]
    fn every_frame_drips() {
        let drips: Vec<_> = apply("drip: { bytes: 3, every: 2ms }");
        assert_eq!(drips.iter().filter(|it| it.ends_with(" dripping (3, 2ms)")).count(), 5, "{drips:?}");
        assert!(apply("drip")[1].ends_with(" dripping (16, 10ms)"));
    }
}
