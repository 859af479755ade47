//! A violated check outside of the report of `rehearse check`.

use std::fmt::Write;

use super::{CheckVerdict, JudgedCheck};
use crate::{
    palette::{BAD, DIM, DOUBTFUL, STRONG},
    text::{printable, wrapped},
};

/// How many violations of a check are shown.
const SHOWN: usize = 5;

/// A violated check with the frames that show it; `place` is where it was found.
pub fn violation_text(check: &JudgedCheck, place: &str, width: usize) -> String {
    let (mark, style) = if check.verdict == CheckVerdict::Fail { ("✗", BAD) } else { ("!", DOUBTFUL) };
    let (level, place) = (check.level.as_deref().unwrap_or_default(), printable(place));
    let mut out = format!("{style}{mark}{style:#} {STRONG}{}{STRONG:#}   {DIM}{level}, {place}{DIM:#}\n", check.id);
    wrapped(&mut out, &printable(&check.rule), "  ", width);
    for violation in check.violations.iter().take(SHOWN) {
        wrapped(&mut out, &printable(&violation.text()), "    ", width);
    }
    if check.violation_count > SHOWN {
        let _ = writeln!(out, "    … {} more", check.violation_count - SHOWN);
    }
    for line in check.violations.first().map(|violation| &violation.evidence[..]).unwrap_or_default() {
        let text: String = line.text.chars().take(width.saturating_sub(4)).collect();
        let _ = writeln!(out, "  {} {}", line.arrow(), printable(&text));
    }
    let _ = writeln!(out, "  {DIM}spec: {}{DIM:#}", check.spec);
    out
}
