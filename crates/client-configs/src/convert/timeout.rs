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
