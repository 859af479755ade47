//! The text report: a table of cells, then every failure once with its cells.

use std::{fmt::Write, time::Duration};

use anstyle::Style;
use similar::{ChangeTag, TextDiff};

use super::{
    Cell, CellResult, Difference, RunResult, ScenarioResult, Status, StepResult, TraceLine,
    palette::{ADDED, BAD, DIM, DOUBTFUL, GOOD, REMOVED, STRONG},
    text::{printable, printable_lines},
};
use rehearse_protocol::{Direction, Protocol};

/// The number of unchanged lines around a difference.
const CONTEXT: usize = 3;
/// The maximum number of named cells of a failure.
const NAMED_CELLS: usize = 8;

/// The maximum number of lines of a difference.
const DIFF_LINES: usize = 60;
/// The width of a cell's column, and of the time after it.
const COLUMN: usize = 6;
const TIME: usize = 7;
const MEANINGS: [(Status, &str); 5] = [
    (Status::Passed, "passed"),
    (Status::Failed, "failed"),
    (Status::Error, "could not run"),
    (Status::NotApplicable, "not applicable"),
    (Status::NotRun, "not run"),
];

/// The layout of the text report.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub width: usize,
    /// Show the frames around a failure.
    pub trace: bool,
}

/// The mark of a cell, and its style.
pub fn cell_mark(status: Status) -> (&'static str, Style) {
    match status {
        Status::Passed => ("✓", GOOD),
        Status::Failed => ("✗", BAD),
        Status::Error => ("!", BAD),
        Status::NotApplicable => ("–", DIM),
        Status::NotRun => ("·", DOUBTFUL),
    }
}

fn styled(text: impl std::fmt::Display, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

pub(super) fn render(result: &RunResult, layout: Layout) -> String {
    let mut out = String::new();
    tables(&mut out, result, layout.width);
    for scenario in &result.scenarios {
        failures(&mut out, scenario, layout);
        warnings(&mut out, scenario);
    }
    summary(&mut out, result);
    out
}

/// All cells, with a row for each scenario. Scenarios with the same matrix share a table.
fn tables(out: &mut String, result: &RunResult, width: usize) {
    let mut groups: Vec<(Vec<Cell>, Vec<&ScenarioResult>)> = Vec::new();
    for scenario in &result.scenarios {
        let mut columns: Vec<_> = scenario.cells.iter().map(|cell| cell.cell).collect();
        columns.sort_by_key(|cell| (cell.transport, protocol_rank(cell.protocol)));
        match groups.iter_mut().find(|(known, _)| *known == columns) {
            Some((_, scenarios)) => scenarios.push(scenario),
            None => groups.push((columns, vec![scenario])),
        }
    }
    groups.sort_by_key(|(_, scenarios)| std::cmp::Reverse(scenarios.len()));
    let name_width =
        result.scenarios.iter().map(|scenario| printable(&scenario.name).chars().count()).max().unwrap_or(0);
    for (columns, scenarios) in &groups {
        match name_width + columns.len() * COLUMN + TIME <= width {
            true => table(out, columns, scenarios, name_width),
            false => scenarios.iter().for_each(|scenario| list(out, scenario, width)),
        }
        out.push('\n');
    }
    let present = |status| result.scenarios.iter().flat_map(|it| &it.cells).any(|cell| cell.status == status);
    let legend = MEANINGS.iter().filter(|(status, _)| present(*status));
    let legend: Vec<_> = legend.map(|(status, meaning)| format!("{} {meaning}", cell_mark(*status).0)).collect();
    let _ = writeln!(out, "{}", styled(format!("{}; time: slowest cell", legend.join("  ")), DIM));
}

fn table(out: &mut String, columns: &[Cell], scenarios: &[&ScenarioResult], name_width: usize) {
    let mut transports = " ".repeat(name_width);
    let mut protocols = transports.clone();
    let mut previous = None;
    for cell in columns {
        let transport = if previous == Some(cell.transport) { String::new() } else { cell.transport.to_string() };
        previous = Some(cell.transport);
        let _ = write!(transports, " {transport:<5}");
        let _ = write!(protocols, " {:<5}", short(cell.protocol));
    }
    let _ = writeln!(out, "{}\n{}", styled(transports.trim_end(), STRONG), styled(protocols.trim_end(), STRONG));
    for scenario in scenarios {
        let _ = write!(out, "{:name_width$}", printable(&scenario.name));
        for column in columns {
            let status = scenario.cells.iter().find(|cell| cell.cell == *column).map(|cell| cell.status);
            let (mark, style) = cell_mark(status.unwrap_or(Status::NotRun));
            let _ = write!(out, " {}    ", styled(mark, style));
        }
        let _ = writeln!(out, "{}", styled(format!("{:>TIME$}", seconds(slowest(scenario))), DIM));
    }
}

/// The cells of a scenario as a list, where a table does not fit.
fn list(out: &mut String, scenario: &ScenarioResult, width: usize) {
    let _ = writeln!(out, "{} {}", styled(printable(&scenario.name), STRONG), styled(seconds(slowest(scenario)), DIM));
    let mut column = 0;
    for cell in &scenario.cells {
        let (mark, style) = cell_mark(cell.status);
        let name = format!("{:<17}", cell.cell);
        if column + name.len() + 4 > width {
            out.truncate(out.trim_end().len());
            out.push('\n');
            column = 0;
        }
        let _ = write!(out, "  {} {name}", styled(mark, style));
        column += name.len() + 4;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

fn slowest(scenario: &ScenarioResult) -> Duration {
    scenario.cells.iter().map(|cell| cell.duration).max().unwrap_or_default()
}

fn protocol_rank(protocol: Protocol) -> (bool, String) {
    (protocol == Protocol::Auto, protocol.to_string())
}

/// Year and month are enough to distinguish the versions.
fn short(protocol: Protocol) -> String {
    match protocol {
        Protocol::Exact(version) => version.as_str()[2..7].to_owned(),
        Protocol::Auto => "auto".to_owned(),
    }
}

fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// The failures of a scenario; equal failures are shown once.
fn failures(out: &mut String, scenario: &ScenarioResult, layout: Layout) {
    let mut groups: Vec<(String, Vec<&CellResult>, Option<&StepResult>)> = Vec::new();
    for cell in &scenario.cells {
        for step in cell.steps.iter().filter(|step| step.status == Status::Failed) {
            group(&mut groups, problems(scenario, step), cell, Some(step));
        }
        if let (Status::Error | Status::NotRun, Some(reason)) = (cell.status, &cell.reason) {
            group(&mut groups, block(reason, "  "), cell, None);
        }
    }
    for (text, cells, step) in &groups {
        let (mark, style) = cell_mark(cells[0].status);
        let _ = writeln!(out, "\n{} {}", styled(mark, style), styled(printable(&scenario.name), STRONG));
        let names: Vec<_> = cells.iter().take(NAMED_CELLS).map(|cell| cell.cell.to_string()).collect();
        let more = match cells.len().saturating_sub(NAMED_CELLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(out, "  in {}{more}", names.join(", "));
        out.push_str(text);
        if layout.trace && step.is_some() {
            trace(out, step.map(|step| &step.trace[..]).unwrap_or_default(), &cells[0].cell.to_string());
        }
        if !cells[0].stderr.is_empty() && (layout.trace || step.is_none()) {
            let _ = writeln!(out, "  {}", styled(format!("stderr in {}", cells[0].cell), DIM));
            out.extend(cells[0].stderr.iter().map(|line| block(line, "    ")));
        }
    }
}

fn warnings(out: &mut String, scenario: &ScenarioResult) {
    if scenario.warnings.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{} {}", styled("?", DOUBTFUL), styled(printable(&scenario.name), STRONG));
    out.extend(scenario.warnings.iter().map(|warning| block(warning, "  ")));
}

/// Indents every line of a text.
fn block(text: &str, indent: &str) -> String {
    printable_lines(text).map(|line| format!("{indent}{line}\n")).collect()
}

fn group<'r>(
    groups: &mut Vec<(String, Vec<&'r CellResult>, Option<&'r StepResult>)>,
    text: String,
    cell: &'r CellResult,
    step: Option<&'r StepResult>,
) {
    match groups.iter_mut().find(|(known, ..)| *known == text) {
        Some((_, cells, _)) => cells.push(cell),
        None => groups.push((text, vec![cell], step)),
    }
}

fn problems(scenario: &ScenarioResult, step: &StepResult) -> String {
    let (path, title) = (scenario.path.display().to_string(), styled(printable(&step.title), STRONG));
    let mut text = format!("  {}:{}  {title}\n", printable(&path), step.line);
    for problem in &step.problems {
        text.push_str(&block(&problem.message, "    "));
        if let Some(difference) = &problem.difference {
            diff(&mut text, difference);
        }
        if let Some(path) = &problem.pending {
            let path = path.display().to_string();
            let _ =
                writeln!(text, "    the new result is in {}; --update accepts it if all cells agree", printable(&path));
        }
    }
    text
}

fn diff(out: &mut String, difference: &Difference) {
    let diff = TextDiff::from_lines(&difference.expected, &difference.actual);
    let _ = writeln!(out, "      {}  {}", styled("- snapshot", REMOVED), styled("+ this run", ADDED));
    let mut lines = Vec::new();
    for (index, hunk) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push(styled("…", DIM));
        }
        for change in hunk.iter().flat_map(|op| diff.iter_changes(op)) {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ("-", REMOVED),
                ChangeTag::Insert => ("+", ADDED),
                ChangeTag::Equal => (" ", DIM),
            };
            lines.push(styled(format!("{sign} {}", printable(change.value().trim_end())), style));
        }
    }
    let more = lines.len().saturating_sub(DIFF_LINES);
    for line in lines.iter().take(DIFF_LINES) {
        let _ = writeln!(out, "      {line}");
    }
    if more > 0 {
        let _ = writeln!(out, "      {}", styled(format!("… and {more} more lines"), DIM));
    }
}

fn trace(out: &mut String, lines: &[TraceLine], cell: &str) {
    let _ = writeln!(out, "  {}", styled(format!("frames in {cell}"), DIM));
    if lines.is_empty() {
        let _ = writeln!(out, "    {}", styled("nothing", DIM));
    }
    for line in lines {
        let arrow = match line.direction {
            Direction::ClientToServer => "→",
            Direction::ServerToClient => "←",
        };
        let at = styled(format!("{:>9.1} ms", line.at.as_secs_f64() * 1000.0), DIM);
        let server = styled(printable(&line.server), STRONG);
        let _ = writeln!(out, "  {at} {arrow} {server} {}", printable(&line.frame));
    }
}

fn summary(out: &mut String, result: &RunResult) {
    let totals = result.totals;
    let part = |count: usize, what: &str, style: Style| (count > 0).then(|| styled(format!("{count} {what}"), style));
    let parts = [
        part(totals.passed, "passed", GOOD),
        part(totals.failed, "failed", BAD),
        part(totals.errors, "could not run", BAD),
        part(totals.not_run, "not run", DOUBTFUL),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let pluralize = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let scenarios = pluralize(result.scenarios.len(), "scenario");
    let cells = pluralize(totals.passed + totals.failed + totals.errors + totals.not_run, "cell");
    let separator = if parts.is_empty() { "" } else { ": " };
    let rest = part(totals.not_applicable, "not applicable", DIM).map(|it| format!("; {it}")).unwrap_or_default();
    let _ = writeln!(
        out,
        "\n{scenarios}, {cells}{separator}{}{rest} {}",
        parts.join(", "),
        styled(format!("({}, seed {})", seconds(result.duration), result.seed), DIM)
    );
}
