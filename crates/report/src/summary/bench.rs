//! The section of `rehearse bench`.

use super::{Case, Failure, Outcome, Section, Suite, Table, counted, missing_case, missing_parts};
use crate::bench::{Bars, BenchResult, Change, Comparison, HEADS, TargetResult, load_phrase, table_cells};

/// The bars of a histogram.
const BARS: usize = 40;

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
    section.facts = vec![
        ("started", result.started_at.clone()),
        ("machine", format!("{}, {} × {}", machine.system, machine.processors, machine.processor)),
        ("load", format!("{}{}", load_phrase(&result.load), parts(result))),
        ("rehearse", result.rehearse.clone()),
    ];
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
    section.remarks = result.comparisons.iter().map(text).chain(result.warnings.iter().cloned()).collect();
    section.remarks.extend(result.distance());
    section
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

fn table(target: &TargetResult) -> Table {
    let version = target.version.map(|version| format!(", {version}")).unwrap_or_default();
    let rows = target.measures.iter().map(|measure| (measure.name.clone(), table_cells(measure)));
    let with_latency = target.measures.iter().filter(|measure| measure.latency.count() > 1);
    let histograms = with_latency.map(|measure| (measure.name.clone(), Bars::new(&measure.latency, BARS).labelled()));
    let mut remarks = Vec::new();
    for measure in &target.measures {
        remarks.extend(measure.errors.iter().map(|(kind, count)| format!("{}: {count} × {kind}", measure.name)));
        let notes = measure.notes().into_iter().map(|(count, note)| format!("{}: {count} {note}", measure.name));
        remarks.extend(notes);
    }
    remarks.extend(target.process.map(|process| process.to_string()));
    remarks.extend(target.max_rate.map(|rate| format!("highest rate that held: {rate:.0} per second")));
    Table {
        title: format!("{} — {}, {}{version}", target.name, target.target, target.transport),
        error: target.error.clone(),
        heads: HEADS.to_vec(),
        rows: rows.collect(),
        histograms: histograms.collect(),
        remarks,
    }
}
