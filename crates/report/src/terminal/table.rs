//! Measures, counts and histograms.

use std::{fmt::Write, ops::Range};

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

/// Writes a table whose columns are as wide as they must be; if it is too wide, in parts.
pub(super) fn table(out: &mut String, table: &Table, layout: &Layout) {
    let _ = writeln!(out, "{}", styled(printable(&table.title), STRONG));
    let width = |text: &str| printable(text).chars().count();
    let longest = table.rows.iter().map(|row| width(&row.name)).max().unwrap_or_default();
    let name_width = longest.min(layout.width / 2);
    let widths = table.heads.iter().enumerate().map(|(at, head)| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
        cells.map(|cell| width(cell)).max().unwrap_or_default().max(head.len())
    });
    let widths: Vec<_> = widths.collect();
    let is_marked = table.rows.iter().any(|row| row.outcome.is_some());
    let indent = if is_marked { "  " } else { "" };
    let room = layout.width.saturating_sub(2 + indent.len() + name_width);
    for part in parts(&widths, room) {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.zip(&widths).skip(part.start).take(part.len());
            cells.map(|(cell, width)| format!("  {cell:>width$}")).collect::<String>()
        };
        if !table.rows.is_empty() {
            let heads = line(&mut table.heads.iter().copied());
            let _ = writeln!(out, "  {}", styled(format!("{indent}{:name_width$}{heads}", ""), DIM));
        }
        for TableRow { outcome, name, cells } in &table.rows {
            let mark = outcome.map_or_else(|| indent.to_owned(), |outcome| format!("{} ", mark(outcome)));
            let cells = line(&mut cells.iter().map(String::as_str));
            // A long name has a line of its own.
            let end = if width(name) > name_width { format!("\n  {indent}{:name_width$}", "") } else { String::new() };
            let _ = writeln!(out, "  {mark}{:name_width$}{end}{}", printable(name), cells.trim_end());
        }
    }
    remarks(out, &table.remarks, "  ", layout);
    out.push('\n');
    table.histograms.iter().for_each(|(name, bars)| histogram(out, name, bars, layout.width));
}

/// The columns that stand beside each other: each time as many as there is room for.
fn parts(widths: &[usize], room: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<_> = std::iter::once(0..0).collect();
    let mut taken = 0;
    for (at, width) in widths.iter().enumerate() {
        taken += width + 2;
        match parts.last_mut() {
            Some(part) if taken <= room || part.start == part.end => part.end = at + 1,
            _ => {
                parts.push(at..at + 1);
                taken = width + 2;
            }
        }
    }
    parts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_is_written_in_parts_and_a_long_name_alone() {
        let row = |name: &str| TableRow {
            outcome: None,
            name: name.to_owned(),
            cells: ["1", "22", "333"].map(str::to_owned).into(),
        };
        let rows = vec![row("list"), row("a long name, longer than half of it")];
        let wide = Table {
            title: "t".to_owned(),
            heads: vec!["requests", "p50", "p99"],
            rows,
            histograms: Vec::new(),
            remarks: Vec::new(),
        };
        let mut text = String::new();
        table(&mut text, &wide, &Layout { width: 40, ..Layout::default() });
        let text = anstream::adapter::strip_str(&text).to_string();
        let expected = "\
t
                        requests  p50
  list                         1   22
  a long name, longer than half of it
                               1   22
                        p99
  list                  333
  a long name, longer than half of it
                        333

";
        assert_eq!(text, expected);
    }
}
