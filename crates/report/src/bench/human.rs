//! The text report: for each server a table of its measures and a histogram of each.

use std::fmt::Write;

use super::{Bars, BenchResult, Change, Comparison, Load, Measure, TargetResult, readable};
use crate::{
    Verdict,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    text::{printable, printable_lines},
};

/// The bars of a histogram.
const BARS: usize = 10;
/// The longest bar, if the report is wide enough.
const LONGEST_BAR: usize = 40;
/// The columns of a table.
pub(crate) const HEADS: [&str; 8] = ["requests", "per second", "p50", "p90", "p99", "p99.9", "max", "errors"];

pub(crate) fn render(result: &BenchResult, width: usize) -> String {
    let mut out = String::new();
    let machine = &result.machine;
    let _ = writeln!(
        out,
        "{DIM}{}, {} × {}, rehearse {}{DIM:#}\n{DIM}{}{}{DIM:#}\n",
        machine.system,
        machine.processors,
        machine.processor,
        result.rehearse,
        load_phrase(&result.load),
        result.shard.map(|it| format!("; this is {} of it", it.shard)).unwrap_or_default()
    );
    for target in &result.targets {
        self::target(&mut out, target, width);
    }
    for comparison in &result.comparisons {
        self::comparison(&mut out, comparison);
    }
    if !result.comparisons.is_empty() {
        out.push('\n');
    }
    for threshold in &result.thresholds {
        let (mark, style) = if threshold.is_met { ("✗", BAD) } else { ("✓", GOOD) };
        let (target, measure) = (printable(&threshold.target), printable(&threshold.measure));
        let _ = writeln!(
            out,
            "{} fail if {}: {} ({target}, {measure})",
            styled(mark, style),
            threshold.expression,
            threshold.found
        );
    }
    for warning in result.warnings.iter().chain(&result.distance()) {
        let _ = writeln!(out, "{} {}", styled("!", DOUBTFUL), printable(warning));
    }
    if let Some(missing) = result.missing_shards() {
        let _ = writeln!(out, "{}", styled(format!("incomplete: {missing}"), BAD));
    }
    let _ = match result.verdict {
        Verdict::Passed | Verdict::NothingTested => writeln!(out, "{}", styled("measured", GOOD)),
        Verdict::Failed => writeln!(out, "{}", styled("failed", BAD)),
        Verdict::CannotRun | Verdict::Incomplete => {
            writeln!(out, "{}", styled("not everything was measured", BAD))
        }
    };
    out
}

/// How requests were sent, in words.
pub(crate) fn load_phrase(load: &Load) -> String {
    let of = |connections: &usize, in_flight: &usize| match (connections, in_flight) {
        (1, 1) => "one request at a time".to_owned(),
        (1, many) => format!("{many} requests at a time on one connection"),
        (many, 1) => format!("{many} connections, one request at a time on each"),
        (many, each) => format!("{many} connections, {each} requests at a time on each"),
    };
    match load {
        Load::Discovery => "discovery, one after the other".to_owned(),
        Load::Closed { connections, in_flight } => {
            format!(
                "{}; each after the answer to the one before, so a slow answer delays the next",
                of(connections, in_flight)
            )
        }
        Load::Open { connections, in_flight, rate } => {
            format!("{rate} requests per second, timed from when each is due; at most {}", of(connections, in_flight))
        }
    }
}

fn target(out: &mut String, target: &TargetResult, width: usize) {
    let version = target.version.map(|version| format!("   {version}")).unwrap_or_default();
    let (name, place) = (printable(&target.name), printable(&target.target));
    let _ = writeln!(out, "{}   {place}   {}{version}", styled(&name, STRONG), target.transport);
    if let Some(error) = &target.error {
        for (number, line) in printable_lines(error).enumerate() {
            let mark = if number == 0 { styled("✗", BAD) } else { " ".to_owned() };
            let _ = writeln!(out, "{mark} {line}");
        }
    }
    if !target.measures.is_empty() {
        table(out, &target.measures);
    }
    for measure in &target.measures {
        remarks(out, measure);
    }
    if let Some(process) = &target.process {
        let _ = writeln!(out, "  {process}");
    }
    for step in &target.steps {
        let (mark, style) = if step.holds { ("✓", GOOD) } else { ("✗", BAD) };
        let _ = writeln!(
            out,
            "  {} {:>9} per second: {}, {:.0} answered per second",
            styled(mark, style),
            format!("{:.0}", step.rate),
            step.found,
            step.answered
        );
    }
    if let Some(rate) = target.max_rate {
        let _ = writeln!(out, "  highest rate that held: {}", styled(format!("{rate:.0} per second"), STRONG));
    }
    out.push('\n');
    for measure in target.measures.iter().filter(|measure| measure.latency.count() > 1) {
        histogram(out, measure, width);
    }
}

/// The measures as a table whose columns are as wide as they must be.
fn table(out: &mut String, measures: &[Measure]) {
    let rows: Vec<_> = measures.iter().map(|measure| (printable(&measure.name), table_cells(measure))).collect();
    let first = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let widths: Vec<_> = (0..HEADS.len())
        .map(|at| {
            let cells = rows.iter().map(|(_, cells)| cells[at].chars().count());
            cells.chain([HEADS[at].len()]).max().unwrap_or_default()
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| -> String {
        cells.zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect()
    };
    let _ = writeln!(out, "{DIM}  {:first$}{}{DIM:#}", "", line(&mut HEADS.into_iter()));
    for (name, cells) in &rows {
        let _ = writeln!(out, "  {name:first$}{}", line(&mut cells.iter().map(String::as_str)));
    }
}

/// The cells of a measure, below [`HEADS`].
pub(crate) fn table_cells(measure: &Measure) -> Vec<String> {
    let at = |percent| readable(measure.latency.percentile(percent));
    let is_empty = measure.latency.count() == 0;
    let latencies = match is_empty {
        true => vec!["-".to_owned(); 5],
        false => vec![at(50.0), at(90.0), at(99.0), at(99.9), readable(measure.latency.max())],
    };
    let errors = match measure.failed() {
        0 => "0".to_owned(),
        failed => format!("{failed} ({:.2} %)", 100.0 * measure.error_share()),
    };
    [vec![grouped(measure.requests()), rate(measure.rate())], latencies, vec![errors]].concat()
}

/// A rate with as many digits as say something.
fn rate(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

/// A number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a table does not say of a measure.
fn remarks(out: &mut String, measure: &Measure) {
    let name = printable(&measure.name);
    for (kind, count) in &measure.errors {
        let _ = writeln!(out, "  {} {name}: {count} × {}", styled("✗", BAD), printable(kind));
    }
    if let Some(first) = &measure.first_event {
        let _ = writeln!(
            out,
            "  {name}: first event after {} (p50), {} (p99)",
            readable(first.percentile(50.0)),
            readable(first.percentile(99.0))
        );
    }
    for (count, note) in measure.notes() {
        let _ = writeln!(out, "  {} {name}: {} {note}", styled("!", DOUBTFUL), grouped(count));
    }
}

/// The histogram of a measure as bars.
fn histogram(out: &mut String, measure: &Measure, width: usize) {
    let _ = writeln!(out, "  {DIM}{}: latency, and how many requests had it{DIM:#}", printable(&measure.name));
    let Bars { bounds, counts } = Bars::new(&measure.latency, BARS);
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let longest = LONGEST_BAR.min(width.saturating_sub(40)).max(10);
    for (pair, count) in bounds.windows(2).zip(&counts) {
        let eighths = (*count as f64 / most as f64 * longest as f64 * 8.0).round() as usize;
        let bar = format!("{}{}", "█".repeat(eighths / 8), ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]);
        let _ = writeln!(
            out,
            "  {:>8} – {:>8} {bar}{}{}",
            readable(pair[0]),
            readable(pair[1]),
            if bar.is_empty() { "" } else { " " },
            grouped(*count)
        );
    }
    out.push('\n');
}

fn comparison(out: &mut String, comparison: &Comparison) {
    let style = match comparison.change {
        Change::Faster => GOOD,
        Change::Slower => BAD,
        Change::NoDifference => DIM,
    };
    let change = styled(comparison.change.phrase(), style);
    let _ = writeln!(out, "{}, {change}", printable(&comparison.to_string()));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([rate(0.5), rate(99.94), rate(1234.5)], ["0.5", "99.9", "1,235"]);
        let read = |micros| readable(Duration::from_micros(micros));
        assert_eq!([read(7), read(12_340), read(123_456), read(9_876_543)], ["7.00 µs", "12.3 ms", "123 ms", "9.88 s"]);
    }
}
