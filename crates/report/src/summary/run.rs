//! The section of `rehearse run`.

use std::collections::HashMap;

use super::{
    Alert, AlertRule, Case, Failure, Matrix, Outcome, Place, Remark, Row, RowGroup, Rule, Scan, Section, Source, Suite,
    Table, TableRow, counted, eval, missing_case, missing_parts, readable,
};
use rehearse_system::program::quoted;

use crate::{
    Cell, CellResult, CellViolation, Coverage, Difference, Problem, RunResult, ScenarioResult, Status, StepResult,
    WireKind, check::CheckVerdict, groups::grouped, text::printable,
};

/// How many lines of a scenario are shown before and after the one that failed.
const BEFORE: usize = 6;
const AFTER: usize = 3;
/// How many cells a command line names.
const FILTERS: usize = 3;
/// The rules of alerts.
const STEP: &str = "scenario-step";
const RULE: &str = "scenario-rule";
const CELL: &str = "scenario-cell";

pub(super) fn section(result: &RunResult) -> Section {
    let mut section = Section {
        title: "Scenarios",
        command: "rehearse run",
        unit: "cells",
        duration: result.duration,
        seed: Some(result.seed),
        verdict: result.verdict(),
        suites: result.scenarios.iter().map(|scenario| suite(scenario, result.interrupted)).collect(),
        scan: Some(scan(result)),
        ..Section::default()
    };
    section.facts = vec![
        ("started", result.started_at.clone()),
        ("duration", readable(result.duration)),
        ("seed", result.seed.to_string()),
        ("rehearse", result.rehearse.clone()),
    ];
    let cells = result.scenarios.iter().flat_map(|scenario| &scenario.cells);
    section.counts = counted(cells.map(|cell| cell.status.into()));
    let causes = Causes::of(result);
    section.matrix = Some(matrix(result, &causes));
    section.failures = causes.failures;
    let missing = result.missing_shards().into_iter().map(|missing| missing_case(&missing));
    section.suites.extend(missing.map(|case| Suite { name: "rehearse run".to_owned(), cases: vec![case] }));
    let shortfall = result.coverage.as_ref().and_then(Coverage::shortfall);
    section.suites.extend(shortfall.map(|shortfall| Suite {
        name: "rehearse run".to_owned(),
        cases: vec![Case {
            name: "coverage".to_owned(),
            outcome: Outcome::Failed,
            message: shortfall,
            ..Case::default()
        }],
    }));
    for scenario in &result.scenarios {
        section.remarks.extend(remarks(scenario));
    }
    section.tables.extend(eval::table(result));
    section.remarks.extend(eval::sentences(result).into_iter().map(|text| Remark::new(Outcome::Info, text)));
    section.tables.extend(result.coverage.as_ref().map(coverage));
    section
}

fn coverage(coverage: &Coverage) -> Table {
    let row = |(name, cells)| TableRow { outcome: None, name, cells };
    let gap = |gap| Remark::new(Outcome::NotRun, format!("not covered: {gap}"));
    Table {
        rows: coverage.rows().into_iter().map(row).collect(),
        remarks: coverage.gaps().into_iter().map(gap).collect(),
        ..Table::new(coverage.title(), &Coverage::HEADS)
    }
}

/// Mistakes in the file, written snapshots, and versions that were left to client and server.
fn remarks(scenario: &ScenarioResult) -> Vec<Remark> {
    let name = &scenario.name;
    let warnings = scenario.warnings.iter().map(|it| Remark::new(Outcome::Warning, format!("{name}: {it}")));
    let accepted = scenario.accepted.iter().map(|path| format!("accepted snapshot: {}", path.display()));
    let accepted = accepted.map(|text| Remark::new(Outcome::Passed, text));
    let versions =
        scenario.cells.iter().filter_map(|it| Some((it.negotiated.as_ref()?, it.cell.transport.to_string())));
    let versions = grouped(versions, |one, other| one == other).into_iter();
    let negotiated = versions.map(|(version, over)| format!("{name} negotiated {version} over {}", over.join(", ")));
    let negotiated = negotiated.map(|text| Remark::new(Outcome::Info, text));
    warnings.chain(accepted).chain(negotiated).collect()
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Outcome {
        match status {
            Status::Passed => Outcome::Passed,
            Status::Failed => Outcome::Failed,
            Status::Error => Outcome::Error,
            Status::NotApplicable => Outcome::NotApplicable,
            Status::NotRun => Outcome::NotRun,
        }
    }
}

fn suite(scenario: &ScenarioResult, is_interrupted: bool) -> Suite {
    let cases = scenario.cells.iter().map(|cell| {
        let details = if cell.status == Status::Failed { details(scenario, cell) } else { String::new() };
        let warnings = cell.violations.iter().filter(|found| found.check.verdict != CheckVerdict::Fail);
        Case {
            name: cell.cell.to_string(),
            outcome: match cell.status {
                Status::NotRun if is_interrupted => Outcome::Error,
                status => status.into(),
            },
            duration: Some(cell.duration),
            message: details.lines().next().or(cell.reason.as_deref()).unwrap_or_default().to_owned(),
            details,
            output: warnings.map(|found| format!("warning: {}", violation(found))).collect(),
            stderr: cell.stderr.join("\n"),
        }
    });
    Suite { name: scenario.name.clone(), cases: cases.collect() }
}

/// What has failed in a cell, in lines.
fn details(scenario: &ScenarioResult, cell: &CellResult) -> String {
    let mut text = String::new();
    for step in &cell.steps {
        for problem in &step.problems {
            text.push_str(&format!("{}:{} {}: {}\n", scenario.path.display(), step.line, step.title, problem.message));
            if let Some(difference) = &problem.difference {
                let diff = similar::TextDiff::from_lines(&difference.expected, &difference.actual);
                text.push_str(&diff.unified_diff().header("expected", "actual").to_string());
            }
        }
    }
    text.extend(cell.violations.iter().filter(|found| found.check.verdict == CheckVerdict::Fail).map(violation));
    text
}

/// A violated rule with the frames that show it.
fn violation(CellViolation { server, check }: &CellViolation) -> String {
    let frames = check.violations.first().map(|violation| &violation.evidence[..]).unwrap_or_default();
    let frames: String = frames.iter().map(|line| format!("{}\n", line.text)).collect();
    format!("{server} {}: {}\n{frames}{}\n", check.id, check.message(), check.spec)
}

/// The failures at the lines of their steps.
fn scan(result: &RunResult) -> Scan {
    let mut alerts = Vec::new();
    for scenario in &result.scenarios {
        for cell in &scenario.cells {
            let path = format!("{}/{}", scenario.name, cell.cell);
            let mut add = |rule: &str, line: usize, message: String, what: &str| {
                alerts.push(Alert {
                    rule: rule.to_owned(),
                    outcome: Outcome::Failed,
                    message,
                    place: Place { file: scenario.path.display().to_string(), line: line.max(1), ..Place::default() },
                    subject: Some([scenario.name.clone(), path.clone()]),
                    fingerprint: Some(format!("{rule}/{path}/{}", printable(what))),
                    accepted: None,
                });
            };
            for step in cell.steps.iter().filter(|step| step.status == Status::Failed) {
                let messages: Vec<_> = step.problems.iter().map(|problem| problem.message.as_str()).collect();
                let message = format!("{} in {}: {}", step.title, cell.cell, messages.join("; "));
                add(STEP, step.line, message, &step.title);
            }
            for CellViolation { server, check } in
                cell.violations.iter().filter(|it| it.check.verdict == CheckVerdict::Fail)
            {
                let message = format!("{server} violates {} in {}: {}", check.id, cell.cell, check.message());
                add(RULE, 1, message, &check.id);
            }
            if let (Status::Error, Some(reason)) = (cell.status, &cell.reason) {
                add(CELL, 1, format!("{} could not run: {reason}", cell.cell), "");
            }
        }
    }
    let rules = [
        (STEP, "A step of a scenario failed: an expectation was not met, or a result differs from its snapshot."),
        (RULE, "A server of a scenario violates the MCP specification."),
        (CELL, "A scenario could not run: a server did not start, or a file could not be read."),
    ];
    let rules = rules.map(|(id, text)| AlertRule {
        id: id.to_owned(),
        outcome: Outcome::Failed,
        rule: Rule { text: text.to_owned(), help: None, link: String::new() },
        area: "scenario".to_owned(),
    });
    let is_complete = result.totals.errors == 0 && result.missing_shards().is_empty();
    Scan { category: Some("rehearse/run/".to_owned()), is_complete, rules: rules.into(), alerts }
}

fn matrix(result: &RunResult, causes: &Causes<'_>) -> Matrix {
    let mut columns: Vec<Cell> = Vec::new();
    for cell in result.scenarios.iter().flat_map(|scenario| &scenario.cells) {
        if !columns.contains(&cell.cell) {
            columns.push(cell.cell);
        }
    }
    columns.sort_by_key(|cell| (cell.transport, cell.protocol.to_string()));
    let positions: HashMap<_, _> = columns.iter().zip(0..).collect();
    let mut scenarios: Vec<_> = result.scenarios.iter().enumerate().collect();
    scenarios.sort_by_key(|(_, scenario)| &scenario.name);
    let rows = scenarios.into_iter().map(|(at, scenario)| {
        let mut cells = vec![None; columns.len()];
        for (index, cell) in scenario.cells.iter().enumerate() {
            cells[positions[&cell.cell]] = Some((cell.status.into(), causes.of_cell.get(&(at, index)).copied()));
        }
        let note = scenario.description.clone().unwrap_or_default();
        let duration = scenario.cells.iter().map(|cell| cell.duration).max();
        Row { name: scenario.name.clone(), note, cells, duration }
    });
    let rows = rows.collect();
    let columns = columns.iter().map(|cell| (cell.transport.to_string(), cell.protocol.to_string())).collect();
    Matrix { columns, row: "scenario", groups: vec![RowGroup { name: String::new(), title: String::new(), rows }] }
}

/// What has failed, each cause once.
#[derive(Default)]
struct Causes<'r> {
    failures: Vec<Failure>,
    /// The cells of each failure.
    cells: Vec<Vec<(&'r ScenarioResult, &'r CellResult)>>,
    /// The index of a failure by what identifies its cause.
    known: HashMap<String, usize>,
    /// The index of the first failure of a cell, by the indices of its scenario and of itself.
    of_cell: HashMap<(usize, usize), usize>,
}

impl<'r> Causes<'r> {
    fn of(result: &'r RunResult) -> Causes<'r> {
        let mut causes = Causes::default();
        for (at, scenario) in result.scenarios.iter().enumerate() {
            for (index, cell) in scenario.cells.iter().enumerate() {
                let mut add = |key: String, line: Option<usize>, failure: &dyn Fn() -> Failure| {
                    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                    let place = format!("{}{line} in {}", scenario.name, cell.cell);
                    let number = causes.add(key, place, (scenario, cell), failure);
                    causes.of_cell.entry((at, index)).or_insert(number);
                };
                for step in cell.steps.iter().filter(|step| step.status == Status::Failed) {
                    add(cause(scenario, step), Some(step.line), &|| of_step(scenario, cell, step));
                }
                for violation in &cell.violations {
                    let failure = of_violation(scenario, violation);
                    let key = format!("{} {} {:?}", failure.title, failure.outcome, failure.messages);
                    add(key, None, &|| of_violation(scenario, violation));
                }
                if let (Status::Error | Status::NotRun, Some(reason)) = (cell.status, &cell.reason) {
                    add(reason.clone(), None, &|| Failure {
                        messages: vec![reason.clone()],
                        stderr: cell.stderr.clone(),
                        ..Failure::new(cell.status.into(), scenario.name.clone())
                    });
                }
            }
        }
        causes.name_disconnections(result);
        causes.name_commands(result.seed);
        for missing in result.missing_shards() {
            causes.failures.push(missing_parts(&missing));
        }
        if let Some(shortfall) = result.coverage.as_ref().and_then(Coverage::shortfall) {
            let messages = vec![shortfall];
            causes.failures.push(Failure { messages, ..Failure::new(Outcome::Failed, "coverage".to_owned()) });
        }
        causes.sort();
        causes
    }

    fn add(
        &mut self,
        key: String,
        place: String,
        failed: (&'r ScenarioResult, &'r CellResult),
        failure: &dyn Fn() -> Failure,
    ) -> usize {
        let number = *self.known.entry(key).or_insert_with(|| {
            self.failures.push(failure());
            self.cells.push(Vec::new());
            self.failures.len() - 1
        });
        self.failures[number].places.push(place);
        self.cells[number].push(failed);
        number
    }

    /// Adds the command lines, one for each scenario, and whether all cells have failed.
    fn name_commands(&mut self, seed: u64) {
        for (failure, cells) in self.failures.iter_mut().zip(&self.cells) {
            let scenarios = grouped(cells.iter().copied(), |one, other| std::ptr::eq(*one, *other));
            failure.again = scenarios.iter().map(|(scenario, cells)| again(scenario, cells, failure, seed)).collect();
            failure.of = "cells";
            failure.is_everywhere = scenarios.iter().all(|(scenario, cells)| cells.len() == ran(scenario));
        }
    }

    /// Adds what the other transports say of the end of a connection.
    fn name_disconnections(&mut self, result: &RunResult) {
        for scenario in &result.scenarios {
            let steps = scenario.cells.iter().flat_map(|cell| &cell.steps).filter(|step| step.lost_connection());
            for (step, number) in steps.filter_map(|step| Some((step, *self.known.get(&cause(scenario, step))?))) {
                let messages = &mut self.failures[number].messages;
                let others = step.problems.iter().map(|problem| &problem.message);
                let others: Vec<_> = others.filter(|message| !messages.contains(message)).cloned().collect();
                messages.extend(others);
            }
        }
    }

    /// The worst first, steps before rules, new snapshots last of them; then what fails most places.
    fn sort(&mut self) {
        for failure in &mut self.failures {
            let first = failure.places.first().cloned().unwrap_or_default();
            failure.example = first;
            failure.places.sort_by(|one, two| step_of(one).cmp(step_of(two)));
        }
        let mut order: Vec<_> = (0..self.failures.len()).collect();
        order.sort_by_key(|at| {
            let failure = &self.failures[*at];
            let is_new = failure.sides[0].is_empty();
            (failure.outcome, failure.rule.is_some(), is_new, std::cmp::Reverse(failure.places.len()), *at)
        });
        let mut positions = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(at, position)| positions[*at] = position);
        let mut failures: Vec<_> = std::mem::take(&mut self.failures).into_iter().zip(&positions).collect();
        failures.sort_by_key(|(_, position)| **position);
        self.failures = failures.into_iter().map(|(failure, _)| failure).collect();
        self.of_cell.values_mut().for_each(|at| *at = positions[*at]);
    }
}

/// The scenario and the line of a place.
fn step_of(place: &str) -> &str {
    place.rsplit_once(" in ").map_or(place, |(step, _)| step)
}

/// What two steps with the same cause have in common, of one scenario or of several. Steps without a snapshot have one
/// cause, and so has the end of a server, which each transport has other words for.
fn cause(scenario: &ScenarioResult, step: &StepResult) -> String {
    if step.lacks_only_snapshots() {
        return "new".to_owned();
    }
    if step.lost_connection() {
        return format!("{}:{}", scenario.path.display(), step.line);
    }
    let text = |problem: &Problem| {
        let difference = problem.difference.as_ref().map(|it| format!("{}\0{}", it.expected, it.actual));
        format!("{}\0{}\0", problem.message, difference.unwrap_or_default())
    };
    step.problems.iter().map(text).collect()
}

fn of_step(scenario: &ScenarioResult, cell: &CellResult, step: &StepResult) -> Failure {
    let (mut messages, mut lines) = (Vec::new(), Vec::new());
    for problem in &step.problems {
        messages.push(problem.message.clone());
        let places = problem.difference.as_ref().map(Difference::places).unwrap_or_default();
        messages.extend((!places.is_empty()).then(|| format!("It differs {places}.")));
        let pending = problem.pending.as_ref().map(|path| path.display());
        messages.extend(
            pending.map(|path| format!("The new result is in {path}; --update accepts it if all cells agree.")),
        );
        if let Some(difference) = &problem.difference {
            lines.extend((!lines.is_empty()).then(|| ('…', String::new())));
            lines.extend(difference.changes());
        }
    }
    let is_snapshot = step.problems.iter().any(|problem| problem.snapshot.is_some());
    let is_new = step.lacks_only_snapshots();
    let title = match is_new {
        true => "results without a snapshot".to_owned(),
        false => format!("{}: {}", scenario.name, step.title),
    };
    let has_stderr = step.trace.iter().any(|it| it.line.kind == WireKind::Stderr);
    Failure {
        messages,
        source: Some(source(scenario, step)),
        earlier: cell
            .steps
            .iter()
            .take_while(|earlier| !std::ptr::eq(*earlier, step))
            .map(|earlier| (earlier.title.clone(), earlier.status.into(), earlier.duration))
            .collect(),
        difference: lines,
        sides: match is_snapshot {
            true if is_new => ["", "this run"],
            true => ["snapshot", "this run"],
            false => ["first time", "later"],
        },
        wire: step.trace.clone(),
        stderr: if has_stderr { Vec::new() } else { cell.stderr.clone() },
        ..Failure::new(Outcome::Failed, title)
    }
}

fn of_violation(scenario: &ScenarioResult, CellViolation { server, check }: &CellViolation) -> Failure {
    let outcome = if check.verdict == CheckVerdict::Fail { Outcome::Failed } else { Outcome::Warning };
    let mut failure = super::check::failure(check, server, outcome);
    failure.messages.push(format!("It is the server `{server}` of {}.", scenario.path.display()));
    failure
}

fn source(scenario: &ScenarioResult, step: &StepResult) -> Source {
    let (first, last) = (step.line.saturating_sub(BEFORE).max(1), step.line + AFTER);
    let lines: Vec<_> = match &scenario.source {
        Some(text) => {
            let numbered = text.lines().zip(1..).filter(|(_, number)| (first..=last).contains(number));
            numbered.map(|(line, number)| (number, line.to_owned())).collect()
        }
        None => vec![(step.line, step.source.clone())],
    };
    Source { path: scenario.path.display().to_string(), line: step.line, lines }
}

/// How many cells of a scenario could have failed.
fn ran(scenario: &ScenarioResult) -> usize {
    scenario.cells.iter().filter(|cell| cell.status != Status::NotApplicable).count()
}

/// The command line that runs cells of a scenario again.
fn again(scenario: &ScenarioResult, cells: &[&CellResult], failure: &Failure, seed: u64) -> String {
    if let Some(again) = &scenario.again {
        return again.clone();
    }
    let mut words = vec!["rehearse".to_owned(), "run".to_owned(), scenario.path.display().to_string()];
    // A difference between cells shows only if all of them run.
    if cells.len() < ran(scenario) && cells.len() <= FILTERS && failure.difference.is_empty() {
        words.extend(cells.iter().flat_map(|cell| ["--filter".to_owned(), format!("/{}$", cell.cell)]));
    }
    words.extend(failure.rule.is_some().then(|| "--check".to_owned()));
    if seed != 1 {
        words.extend(["--seed".to_owned(), seed.to_string()]);
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}
