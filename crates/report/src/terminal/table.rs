//! Measures, counts and histograms.

use std::fmt::Write;

use super::{mark, remarks};
use crate::{
    Layout,
    bench::Bar,
    palette::{DIM, STRONG, styled},
    summary::{Table, TableRow},
    text::printable,
};

/// How many bars of a histogram are one here.
const MERGED: usize = 4;
/// The longest bar, if the report is wide enough.
const LONGEST: usize = 40;

/// Writes a table whose columns are as wide as they must be.
pub(super) fn table(out: &mut String, table: &Table, layout: &Layout) {
    let _ = writeln!(out, "{}", styled(printable(&table.title), STRONG));
    let width = |text: &str| printable(text).chars().count();
    let name_width = table.rows.iter().map(|row| width(&row.name)).max().unwrap_or_default();
    let widths = table.heads.iter().enumerate().map(|(at, head)| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
        cells.map(|cell| width(cell)).max().unwrap_or_default().max(head.len())
    });
    let widths: Vec<_> = widths.collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        cells.zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect::<String>()
    };
    let is_marked = table.rows.iter().any(|row| row.outcome.is_some());
    let indent = if is_marked { "  " } else { "" };
    if !table.rows.is_empty() {
        let heads = line(&mut table.heads.iter().copied());
        let _ = writeln!(out, "  {}", styled(format!("{indent}{:name_width$}{heads}", ""), DIM));
    }
    for TableRow { outcome, name, cells } in &table.rows {
        let mark = outcome.map_or_else(|| indent.to_owned(), |outcome| format!("{} ", mark(outcome)));
        let cells = line(&mut cells.iter().map(String::as_str));
        let _ = writeln!(out, "  {mark}{:name_width$}{cells}", printable(name));
    }
    remarks(out, &table.remarks, "  ", layout);
    out.push('\n');
    table.histograms.iter().for_each(|(name, bars)| histogram(out, name, bars, layout.width));
}

fn histogram(out: &mut String, name: &str, bars: &[Bar], width: usize) {
    let title = format!("{}: latency (logarithmic), and how many requests had it", printable(name));
    let _ = writeln!(out, "  {}", styled(title, DIM));
    let sum = |bars: &[Bar]| bars.iter().map(|bar| bar.count).sum::<u64>();
    let most = bars.chunks(MERGED).map(sum).max().unwrap_or_default().max(1);
    let longest = LONGEST.min(width.saturating_sub(40)).max(10);
    for bars in bars.chunks(MERGED) {
        let (from, count) = (&bars[0].from, sum(bars));
        let marks = bars.iter().flat_map(|bar| &bar.marks).map(|mark| format!("  {mark}")).collect::<String>();
        let marks = styled(marks, STRONG);
        let eighths = (count as f64 / most as f64 * longest as f64 * 8.0).round() as usize;
        let bar = format!("{}{}", "█".repeat(eighths / 8), ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]);
        let space = if bar.is_empty() { "" } else { " " };
        let _ = writeln!(out, "  {from:>8} – {bar}{space}{count}{marks}");
    }
    out.push('\n');
}
