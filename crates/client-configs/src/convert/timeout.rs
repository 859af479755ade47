//! How long to wait, in another program's unit and range.

use std::time::Duration;

use crate::dialect::TimeoutRule;

/// A timeout as a program has it: the number nearest to what was meant, and how it differs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Exactly(u64),
    /// Another number, and why.
    About(u64, String),
    /// None is better than any number; why.
    Not(String),
}

pub(super) fn count(timeout: Duration, rule: &TimeoutRule, program: &str) -> Counted {
    let TimeoutRule { unit, least, most, .. } = *rule;
    let name = if unit == 1000 { "seconds" } else { "milliseconds" };
    // What was read as a fraction of seconds may be off by some nanoseconds.
    let micros = timeout.as_nanos().saturating_add(500) / 1000;
    let unit = u128::from(unit) * 1000;
    let Ok(number) = u64::try_from(micros.div_ceil(unit)) else {
        return Counted::Not(format!("{program} cannot count so many {name}"));
    };
    let taken = number.clamp(least, most);
    match taken {
        _ if taken != number && number == 0 => Counted::Not(format!("{program} has no timeout of 0")),
        _ if taken != number => {
            let range = match most {
                u64::MAX => format!("at least {least}"),
                _ => format!("from {least} to {most}"),
            };
            Counted::About(taken, format!("{program} takes {name}, {range}: it is {taken} there"))
        }
        _ if !micros.is_multiple_of(unit) => {
            Counted::About(taken, format!("{program} takes whole {name}: it is {taken} there"))
        }
        _ => Counted::Exactly(taken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Outside;

    #[test]
    fn a_timeout_is_counted_in_the_unit_of_the_program() {
        let seconds =
            TimeoutRule { unit: 1000, least: 1, most: 3600, whole: false, outside: Outside::Rejected, default: 60 };
        let of = |millis| count(Duration::from_millis(millis), &seconds, "P");
        assert_eq!(of(30_000), Counted::Exactly(30));
        assert_eq!(of(1500), Counted::About(2, "P takes whole seconds: it is 2 there".into()));
        assert_eq!(of(4_000_000), Counted::About(3600, "P takes seconds, from 1 to 3600: it is 3600 there".into()));
        assert_eq!(of(0), Counted::Not("P has no timeout of 0".into()));
        let millis = TimeoutRule {
            unit: 1,
            least: 1000,
            most: u64::MAX,
            whole: false,
            outside: Outside::Ignored,
            default: 60_000,
        };
        let of = |seconds| count(Duration::from_secs_f64(seconds), &millis, "P");
        assert_eq!(of(1_234_567.891), Counted::Exactly(1_234_567_891));
        assert_eq!(of(0.5), Counted::About(1000, "P takes milliseconds, at least 1000: it is 1000 there".into()));
        assert_eq!(of(1.0001), Counted::About(1001, "P takes whole milliseconds: it is 1001 there".into()));
        assert!(matches!(count(Duration::MAX, &millis, "P"), Counted::Not(_)));
    }
}
