//! A violated check outside of the report of `rehearse check`.

use super::{CheckVerdict, JudgedCheck};
use crate::{
    Layout,
    summary::{Outcome, of_check},
    terminal,
};

/// A violated check with the frames that show it; `place` is where it was found.
pub fn violation_text(check: &JudgedCheck, place: &str, width: usize) -> String {
    let outcome = if check.verdict == CheckVerdict::Fail { Outcome::Failed } else { Outcome::Warning };
    let mut failure = of_check(check, place, outcome);
    failure.places.push(format!("in {place}"));
    let mut out = String::new();
    terminal::failure(&mut out, &failure, false, &Layout { width, ..Layout::default() });
    out
}
