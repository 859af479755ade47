//! A violated check outside of the report of `rehearse check`.

use super::failure;
use crate::{
    Layout,
    check::{CheckVerdict, JudgedCheck},
    summary::{Outcome, of_check},
};

/// A violated check with the frames that show it; `place` is where it was found.
pub fn violation_text(check: &JudgedCheck, place: &str, width: usize) -> String {
    let outcome = if check.verdict == CheckVerdict::Fail { Outcome::Failed } else { Outcome::Warning };
    let mut found = of_check(check, place, outcome);
    found.places.push(format!("in {place}"));
    let mut out = String::new();
    failure(&mut out, &found, false, &Layout { width, ..Layout::default() });
    out
}
