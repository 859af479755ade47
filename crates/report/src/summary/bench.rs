//! The section of `rehearse bench`.

use rehearse_document::text::shortened;

use super::{
    Case, Failure, Outcome, Remark, Section, Suite, Table, TableRow, counted, counted_word, missing_case, missing_parts,
};
use crate::bench::{BenchResult, Change, Comparison, Measure, TargetResult, labelled, readable};

/// The bars of a histogram.
const BARS: usize = 40;
/// How much of the text of an error is shown.
const ERROR: usize = 200;
/// How many servers, and how many causes, are named.
const NAMES: usize = 3;
const HEADS: [&str; 8] = ["requests", "per second", "p50", "p90", "p99", "p99.9", "max", "errors"];

pub(super) fn section(result: &BenchResult) -> Section {
    let mut section = Section {
        title: "Benchmark",
        command: "rehearse bench",
        unit: "thresholds",
        verdict: result.verdict,
        suites: vec![suite(result)],
        ..Section::default()
    };
    let machine = &result.machine;
    section.facts = vec![("started", result.started_at.clone()), ("rehearse", result.rehearse.clone())];
    let part = result.shard.map(|it| format!("; this is {} of it", it.shard)).unwrap_or_default();
    let names: Vec<_> = result.targets.iter().map(|target| target.name.as_str()).collect();
    let names = if names.len() > NAMES { counted_word(names.len(), "server") } else { names.join(", ") };
    let machine = format!("{}, {} × {}", machine.system, machine.processors, machine.processor);
    section.subjects = vec![(names, vec![format!("{}{}{part}", result.load.phrase(), parts(result)), machine])];
    let gates = result.comparisons.iter().filter(|it| it.is_gate);
    let of_gates = gates.clone().map(|it| of_threshold(it.change == Change::Slower));
    section.counts = counted(result.thresholds.iter().map(|it| of_threshold(it.is_met)).chain(of_gates));
    for target in result.targets.iter().filter(|target| target.error.is_some()) {
        let messages = target.error.clone().into_iter().collect();
        section.failures.push(Failure { messages, ..Failure::new(Outcome::Error, target.name.clone()) });
    }
    if let Some(missing) = result.missing_shards() {
        section.failures.push(missing_parts(&missing));
    }
    for threshold in result.thresholds.iter().filter(|threshold| threshold.is_met) {
        section.failures.push(Failure {
            messages: vec![format!("Measured: {}.", threshold.found)],
            places: vec![format!("{}, {}", threshold.target, threshold.measure)],
            ..Failure::new(Outcome::Failed, format!("fail if {}", threshold.expression))
        });
    }
    for comparison in gates.filter(|comparison| comparison.change == Change::Slower) {
        section.failures.push(Failure {
            messages: vec![text(comparison)],
            places: vec![format!("{}, {}", comparison.target, comparison.measure)],
            ..Failure::new(Outcome::Failed, format!("slower than {}", comparison.base))
        });
    }
    section.tables = result.targets.iter().map(table).collect();
    section.remarks = result.comparisons.iter().map(|it| Remark::new(it.change.into(), text(it))).collect();
    let kept = result.thresholds.iter().filter(|it| !it.is_met);
    section.remarks.extend(kept.map(|it| {
        let text = format!("fail if {}: {} ({}, {})", it.expression, it.found, it.target, it.measure);
        Remark::new(Outcome::Passed, text)
    }));
    let warnings = result.warnings.iter().cloned().chain(result.distance());
    section.remarks.extend(warnings.map(|text| Remark::new(Outcome::Warning, text)));
    section.sentence = Some(sentence(result));
    section
}

/// What made it fail, or the figures if there is one kind of request, or how many servers there were.
fn sentence(result: &BenchResult) -> String {
    let broken = result.thresholds.iter().filter(|it| it.is_met);
    let broken = broken.map(|it| format!("fail if {}: {}", it.expression, it.found));
    let slower = result.comparisons.iter().filter(|it| it.is_gate && it.change == Change::Slower).map(text);
    let causes: Vec<_> = broken.chain(slower).take(NAMES).collect();
    let mut measures = result.targets.iter().flat_map(|target| &target.measures);
    match (&causes[..], measures.next(), measures.next()) {
        ([], Some(it), None) if it.latency.count() > 0 => {
            let [half, most] = [50.0, 99.0].map(|percent| readable(it.latency.percentile(percent)));
            format!("{}: p50 {half}, p99 {most}, {} per second", it.name, rate(it.rate()))
        }
        ([], _, _) => counted_word(result.targets.len(), "server"),
        (causes, _, _) => causes.join("; "),
    }
}

/// Which parts of the load were sent.
fn parts(result: &BenchResult) -> String {
    let numbers: Vec<_> = result.shards.iter().map(|it| it.shard.index.to_string()).collect();
    match result.shards.first() {
        Some(first) => format!("; parts {} of {}", numbers.join(", "), first.shard.count),
        None => String::new(),
    }
}

/// A case for each server, and for each threshold and each comparison that can fail a benchmark.
fn suite(result: &BenchResult) -> Suite {
    let case = |name, outcome, message| Case { name, outcome, message, ..Case::default() };
    let targets = result.targets.iter().map(|it| match &it.error {
        Some(error) => case(it.name.clone(), Outcome::Error, error.clone()),
        None => case(it.name.clone(), Outcome::Passed, String::new()),
    });
    let thresholds = result.thresholds.iter().map(|it| {
        let name = format!("{}, {}: fail if {}", it.target, it.measure, it.expression);
        case(name, of_threshold(it.is_met), it.found.clone())
    });
    let gates = result.comparisons.iter().filter(|it| it.is_gate).map(|it| {
        let name = format!("{}, {}: {} against {}", it.target, it.measure, it.figure, it.base);
        case(name, of_threshold(it.change == Change::Slower), format!("{:.2} times", it.ratio))
    });
    let missing = result.missing_shards().map(|it| missing_case(&it));
    Suite { name: "rehearse bench".to_owned(), cases: targets.chain(thresholds).chain(gates).chain(missing).collect() }
}

fn of_threshold(is_failed: bool) -> Outcome {
    if is_failed { Outcome::Failed } else { Outcome::Passed }
}

fn text(comparison: &Comparison) -> String {
    format!("{comparison}, {}", comparison.change.phrase())
}

impl From<Change> for Outcome {
    fn from(change: Change) -> Outcome {
        match change {
            Change::Faster => Outcome::Passed,
            Change::Slower => Outcome::Warning,
            Change::NoDifference => Outcome::Info,
        }
    }
}

fn table(target: &TargetResult) -> Table {
    let version = target.version.map(|version| format!(", {version}")).unwrap_or_default();
    let mut table = Table::new(format!("{} — {}, {}{version}", target.name, target.target, target.transport), &HEADS);
    let row = |it: &Measure| TableRow { outcome: None, name: it.name.clone(), cells: cells(it) };
    table.rows = target.measures.iter().map(row).collect();
    let with_latency = target.measures.iter().filter(|measure| measure.latency.count() > 1);
    table.histograms = with_latency.map(|measure| (measure.name.clone(), labelled(&measure.latency, BARS))).collect();
    for measure in &target.measures {
        let name = &measure.name;
        let errors = measure.errors.iter().map(|(kind, count)| format!("{name}: {count} × {kind}"));
        table.remarks.extend(errors.map(|text| Remark::new(Outcome::Failed, text)));
        let said = measure.first_error.as_ref().map(|text| format!("  the first one says: {}", shortened(text, ERROR)));
        table.remarks.extend(said.map(|text| Remark::new(Outcome::Failed, text)));
        let first = measure.first_event.as_ref().map(|first| {
            let [half, most] = [50.0, 99.0].map(|percent| readable(first.percentile(percent)));
            format!("{name}: first event after {half} (p50), {most} (p99)")
        });
        table.remarks.extend(first.map(|text| Remark::new(Outcome::Info, text)));
        let notes = measure.notes().into_iter().map(|(count, note)| format!("{name}: {} {note}", grouped(count)));
        table.remarks.extend(notes.map(|text| Remark::new(Outcome::Warning, text)));
    }
    table.remarks.extend(target.process.map(|process| Remark::new(Outcome::Info, process.to_string())));
    for step in &target.steps {
        let outcome = if step.holds { Outcome::Passed } else { Outcome::Failed };
        let text = format!("{:.0} per second: {}, {:.0} answered per second", step.rate, step.found, step.answered);
        table.remarks.push(Remark::new(outcome, text));
    }
    let rate = target.max_rate.map(|rate| format!("highest rate that held: {rate:.0} per second"));
    table.remarks.extend(rate.map(|text| Remark::new(Outcome::Info, text)));
    table
}

/// The cells of a measure, below [`HEADS`].
fn cells(measure: &Measure) -> Vec<String> {
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
