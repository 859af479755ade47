//! The answer comes late.

use std::time::Duration;

use super::{EVERYWHERE, Fault, FaultInfo, FaultState, ResponsePart, options};
use rehearse_document::{Node, Problems};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "delay",
    summary: "The answer comes late, and everything that precedes it",
    options: &[
        ("min", "at least this time, 0 by default"),
        ("max", "at most this time; the seed decides. `delay: 200ms` is always the same"),
    ],
    example: "delay: { min: 10ms, max: 200ms }",
    transports: EVERYWHERE,
    read: |node| Delay::read(node).map(Fault::Delay),
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    min: Duration,
    max: Duration,
}

impl Delay {
    fn read(node: &Node) -> Result<Delay, Problems> {
        if options::is_scalar(node) {
            let time = node.duration()?;
            return Ok(Delay { min: time, max: time });
        }
        let options = options::read(&INFO, node)?;
        let min = options.read("min", Node::duration)?.unwrap_or_default();
        let max = options.required("max")?;
        match max.duration()? {
            max if max >= min => Ok(Delay { min, max }),
            _ => Err(max.problem("`max` is less than `min`").into()),
        }
    }

    pub(super) fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if part == ResponsePart::Begin {
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let (min, max) = (nanos(self.min), nanos(self.max));
            out.push(ResponsePart::Wait(Duration::from_nanos(min + state.rng.number_up_to(max - min))));
        }
        out.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{apply, error, parts},
        *,
    };

    #[test]
    fn the_wait_precedes_everything_and_its_time_comes_from_the_seed() {
        assert_eq!(apply("delay: 30ms")[..3], ["Wait(30ms)", "Begin", "n1"]);
        let time = |seed| parts("delay: { min: 10ms, max: 20ms }", seed).swap_remove(0);
        let times: Vec<_> = (0..20).map(time).collect();
        for part in &times {
            let ResponsePart::Wait(time) = part else { panic!("{part:?}") };
            assert!((Duration::from_millis(10)..=Duration::from_millis(20)).contains(time), "{time:?}");
        }
        assert!(times.iter().any(|time| *time != times[0]));
        assert_eq!(time(3), times[3]);
    }

    #[test]
    fn the_limits_must_be_in_order() {
        assert!(error("delay: { min: 2s, max: 1s }").contains("`max` is less than `min`"));
        assert!(error("delay: 5").contains("write a number with a unit"));
    }
}
