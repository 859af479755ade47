//! The answer comes slowly.

use std::time::Duration;

use super::{About, EVERYWHERE, Fault, Item, read};
use crate::config::{Node, Problems};

pub(super) const ABOUT: About = About {
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
        let options = read::options(&ABOUT, node)?;
        Ok(Drip {
            bytes: options.read("bytes", read::some_bytes)?.unwrap_or(16),
            every: options.read("every", Node::duration)?.unwrap_or(Duration::from_millis(10)),
        })
    }

    pub(super) fn apply(&self, item: Item, out: &mut Vec<Item>) {
        out.push(match item {
            Item::Packet(mut packet) => {
                packet.drip = Some((self.bytes, self.every));
                Item::Packet(packet)
            }
            item => item,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::play;

    #[test]
    fn every_frame_drips() {
        let drips: Vec<_> = play("drip: { bytes: 3, every: 2ms }");
        assert_eq!(drips.iter().filter(|it| it.ends_with(" dripping (3, 2ms)")).count(), 5, "{drips:?}");
        assert!(play("drip")[1].ends_with(" dripping (16, 10ms)"));
    }
}
