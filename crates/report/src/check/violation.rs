//! A violated row outside of the report of a check.

use std::fmt::Write;

use super::{CheckedRow, RowVerdict};
use crate::{
    palette::{BAD, DIM, DOUBTFUL, STRONG},
    text::{printable, wrapped},
};

/// How many violations of a row are shown.
const SHOWN: usize = 5;

/// A violated row with the frames that show it; `place` is where it was found.
pub fn violation_text(row: &CheckedRow, place: &str, width: usize) -> String {
    let (mark, style) = if row.verdict == RowVerdict::Fail { ("✗", BAD) } else { ("!", DOUBTFUL) };
    let (level, place) = (row.level.as_deref().unwrap_or_default(), printable(place));
    let mut out = format!("{style}{mark}{style:#} {STRONG}{}{STRONG:#}   {DIM}{level}, {place}{DIM:#}\n", row.id);
    wrapped(&mut out, &printable(&row.rule), "  ", width);
    for violation in row.violations.iter().take(SHOWN) {
        wrapped(&mut out, &printable(&violation.text()), "    ", width);
    }
    if row.violation_count > SHOWN {
        let _ = writeln!(out, "    … {} more", row.violation_count - SHOWN);
    }
    for line in row.violations.first().map(|violation| &violation.evidence[..]).unwrap_or_default() {
        let text: String = line.text.chars().take(width.saturating_sub(4)).collect();
        let _ = writeln!(out, "  {} {}", line.arrow(), printable(&text));
    }
    let _ = writeln!(out, "  {DIM}spec: {}{DIM:#}", row.spec);
    out
}
