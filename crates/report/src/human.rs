//! The text report: a table of cells, then every failure once with its cells.

use std::{fmt::Write, time::Duration};

use anstyle::Style;
use serde_json::Value as Json;

use rehearse_system::program::quoted;

use super::{
    Cell, CellResult, CellViolation, Coverage, Difference, Layout, RunResult, ScenarioResult, Status, StepResult,
    TraceLine,
    check::violation_text,
    eval,
    groups::grouped,
    palette::{ADDED, BAD, DIM, DOUBTFUL, GOOD, REMOVED, STRONG, styled},
    summary::Outcome,
    text::{printable, printable_lines},
};
use rehearse_protocol::Protocol;

/// The maximum number of named cells of a failure.
const NAMED_CELLS: usize = 8;

/// The maximum number of named snapshots.
const ACCEPTED: usize = 20;
/// How many cells a command line names at most.
const FILTERS: usize = 3;
/// How many items that were not used are named.
const GAPS: usize = 20;
/// The number of rows after which a table repeats its header.
const ROWS: usize = 40;
/// The width of a cell's column, and of the time after it.
const COLUMN: usize = 6;
const TIME: usize = 7;
/// The minimum width of the column of names.
const MIN_NAME: usize = 8;
/// The order of the legend.
const STATUSES: [Status; 5] = [Status::Passed, Status::Failed, Status::Error, Status::NotApplicable, Status::NotRun];

/// The mark of a cell, and its style.
fn cell_mark(status: Status) -> (&'static str, Style) {
    let style = match status {
        Status::Passed => GOOD,
        Status::Failed | Status::Error => BAD,
        Status::NotApplicable => DIM,
        Status::NotRun => DOUBTFUL,
    };
    (Outcome::from(status).mark(), style)
}

pub(super) fn render(result: &RunResult, layout: &Layout) -> String {
    let mut out = String::new();
    tables(&mut out, result, layout.width);
    for scenario in &result.scenarios {
        failures(&mut out, scenario, layout);
        violations(&mut out, scenario, layout.width);
        warnings(&mut out, scenario, layout.width);
    }
    negotiated(&mut out, result);
    accepted(&mut out, result);
    again(&mut out, result);
    evals(&mut out, result, layout.width);
    coverage(&mut out, result);
    summary(&mut out, result);
    out
}

/// All cells, with a row for each scenario. Scenarios with the same matrix share a table.
fn tables(out: &mut String, result: &RunResult, width: usize) {
    let columns = |scenario: &ScenarioResult| {
        let mut columns: Vec<_> = scenario.cells.iter().map(|cell| cell.cell).collect();
        columns.sort_by_key(|cell| (cell.transport, protocol_rank(cell.protocol)));
        columns
    };
    let mut groups = grouped(result.scenarios.iter().map(|scenario| (columns(scenario), scenario)), Vec::eq);
    groups.sort_by_key(|(_, scenarios)| std::cmp::Reverse(scenarios.len()));
    let longest = result.scenarios.iter().map(|scenario| printable(&scenario.name).chars().count()).max().unwrap_or(0);
    for (columns, scenarios) in &groups {
        match width.saturating_sub(columns.len() * COLUMN + TIME) {
            0..MIN_NAME => scenarios.iter().for_each(|scenario| list(out, scenario, width)),
            space => table(out, columns, scenarios, longest.min(space)),
        }
        out.push('\n');
    }
    let present = |status| result.scenarios.iter().flat_map(|it| &it.cells).any(|cell| cell.status == status);
    let legend = STATUSES.into_iter().filter(|status| present(*status)).map(Outcome::from);
    let legend: Vec<_> = legend.map(|outcome| format!("{} {}", outcome.mark(), outcome.phrase())).collect();
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
    for (row, scenario) in scenarios.iter().enumerate() {
        if row % ROWS == 0 {
            let _ =
                writeln!(out, "{}\n{}", styled(transports.trim_end(), STRONG), styled(protocols.trim_end(), STRONG));
        }
        let mut name = printable(&scenario.name);
        if name.chars().count() > name_width {
            // A long name has a line of its own.
            let _ = writeln!(out, "{name}");
            name = "".into();
        }
        let _ = write!(out, "{name:name_width$}");
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
fn failures(out: &mut String, scenario: &ScenarioResult, layout: &Layout) {
    let found = scenario.cells.iter().flat_map(|cell| {
        let steps = cell.steps.iter().filter(|step| step.status == Status::Failed);
        let steps = steps.map(move |step| {
            let key = if step.lost_connection() {
                format!("line {}", step.line)
            } else {
                problems(scenario, step, layout.width)
            };
            (key, (cell, Some(step)))
        });
        let is_without_steps = matches!(cell.status, Status::Error | Status::NotRun);
        let reason = cell.reason.as_ref().filter(|_| is_without_steps);
        steps.chain(reason.map(|reason| (block(reason, "  ", layout.width), (cell, None))))
    });
    for (key, found) in grouped(found, String::eq) {
        let (cells, steps): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let step = steps[0];
        let (mark, style) = cell_mark(cells[0].status);
        let _ = writeln!(out, "\n{} {}", styled(mark, style), styled(printable(&scenario.name), STRONG));
        let _ = writeln!(out, "  in {}", cell_names(scenario, &cells));
        match step.filter(|step| step.lost_connection()) {
            Some(step) => {
                out.push_str(&problems(scenario, step, layout.width));
                let messages = steps.iter().flatten().flat_map(|it| &it.problems).map(|it| it.message.as_str());
                let mut others: Vec<_> = messages.filter(|message| *message != step.problems[0].message).collect();
                others.dedup();
                out.extend(others.into_iter().map(|message| block(message, "    ", layout.width)));
            }
            None => out.push_str(&key),
        }
        if layout.trace && step.is_some() {
            let frames = step.map(|step| &step.trace[..]).unwrap_or_default();
            trace(out, frames, &cells[0].cell.to_string(), layout.width);
        }
        if !cells[0].stderr.is_empty() && (layout.trace || step.is_none()) {
            let _ = writeln!(out, "  {}", styled(format!("stderr in {}", cells[0].cell), DIM));
            out.extend(cells[0].stderr.iter().map(|line| block(line, "    ", layout.width)));
        }
    }
}

/// The rules that servers have violated; each is shown once, as the first cell shows it.
fn violations(out: &mut String, scenario: &ScenarioResult, width: usize) {
    let all = scenario.cells.iter().flat_map(|cell| cell.violations.iter().map(move |found| (found, cell)));
    let mut groups = grouped(all, |one, other| (&one.check.id, &one.server) == (&other.check.id, &other.server));
    groups.sort_by_key(|(found, _)| found.check.verdict);
    for (CellViolation { server, check }, cells) in groups {
        let place = format!("{} {server} in {}", scenario.name, cell_names(scenario, &cells));
        let _ = write!(out, "\n{}", violation_text(check, &place, width));
    }
}

/// The cells of a failure: all of the scenario that ran, or the first ones by name.
fn cell_names(scenario: &ScenarioResult, cells: &[&CellResult]) -> String {
    let ran = scenario.cells.iter().filter(|cell| cell.status != Status::NotApplicable).count();
    if cells.len() == ran && ran > 2 {
        return format!("all {ran} cells");
    }
    let names: Vec<_> = cells.iter().take(NAMED_CELLS).map(|cell| cell.cell.to_string()).collect();
    match cells.len().saturating_sub(NAMED_CELLS) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn warnings(out: &mut String, scenario: &ScenarioResult, width: usize) {
    if scenario.warnings.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{} {}", styled("?", DOUBTFUL), styled(printable(&scenario.name), STRONG));
    out.extend(scenario.warnings.iter().map(|warning| block(warning, "  ", width)));
}

/// The versions of cells that leave them to client and server.
fn negotiated(out: &mut String, result: &RunResult) {
    if result.scenarios.iter().flat_map(|scenario| &scenario.cells).any(|cell| cell.negotiated.is_some()) {
        out.push('\n');
    }
    for scenario in &result.scenarios {
        let versions = scenario.cells.iter().filter_map(|cell| Some((cell.negotiated.as_ref()?, cell)));
        for (version, cells) in grouped(versions, |one, other| one == other) {
            let transports: Vec<_> = cells.iter().map(|cell| cell.cell.transport.to_string()).collect();
            let text = format!("{} negotiated {} over {}", scenario.name, version, transports.join(", "));
            let _ = writeln!(out, "{}", styled(printable(&text), DIM));
        }
    }
}

/// The snapshots that this run has written.
fn accepted(out: &mut String, result: &RunResult) {
    let paths: Vec<_> = result.scenarios.iter().flat_map(|scenario| &scenario.accepted).collect();
    if paths.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{} {}", styled("✓", GOOD), styled("accepted snapshots", STRONG));
    for path in paths.iter().take(ACCEPTED) {
        let _ = writeln!(out, "  {}", printable(&path.display().to_string()));
    }
    if let more @ 1.. = paths.len().saturating_sub(ACCEPTED) {
        let _ = writeln!(out, "  … and {more} more");
    }
}

/// What failed, and the command line that repeats it.
fn again(out: &mut String, result: &RunResult) {
    let fails = |cell: &&CellResult| matches!(cell.status, Status::Failed | Status::Error);
    for scenario in &result.scenarios {
        let failed: Vec<_> = scenario.cells.iter().filter(fails).collect();
        let Some(cell) = failed.first() else { continue };
        let (mark, style) = cell_mark(cell.status);
        let (name, cells) = (styled(printable(&scenario.name), STRONG), cell_names(scenario, &failed));
        let _ = writeln!(out, "\n{} {name}  {cells}", styled(mark, style));
        let mut words = vec!["rehearse".to_owned(), "run".to_owned(), scenario.path.display().to_string()];
        let ran = scenario.cells.iter().filter(|cell| cell.status != Status::NotApplicable).count();
        // A difference between cells shows only if all of them run.
        let mut problems = failed.iter().flat_map(|cell| &cell.steps).flat_map(|step| &step.problems);
        if failed.len() < ran && failed.len() <= FILTERS && !problems.any(|problem| problem.difference.is_some()) {
            words.extend(failed.iter().flat_map(|cell| ["--filter".to_owned(), format!("/{}$", cell.cell)]));
        }
        if failed.iter().any(|cell| !cell.violations.is_empty()) {
            words.push("--check".to_owned());
        }
        if result.seed != 1 {
            words.extend(["--seed".to_owned(), result.seed.to_string()]);
        }
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        let line = scenario.again.clone().unwrap_or_else(|| words.join(" "));
        let _ = writeln!(out, "  again: {}", printable(&line));
    }
}

/// Indents every line of a text, and wraps it at spaces.
fn block(text: &str, indent: &str, width: usize) -> String {
    let options = textwrap::Options::new(width).subsequent_indent(indent).initial_indent(indent).break_words(false);
    printable_lines(text)
        .flat_map(|line| {
            // Columns that a text aligns with spaces stay.
            let lines = match line.starts_with(' ') {
                true => vec![format!("{indent}{line}").into()],
                false => textwrap::wrap(&line, &options),
            };
            lines.into_iter().map(|line| format!("{line}\n")).collect::<Vec<_>>()
        })
        .collect()
}

fn problems(scenario: &ScenarioResult, step: &StepResult, width: usize) -> String {
    let (path, title) = (scenario.path.display().to_string(), styled(printable(&step.title), STRONG));
    let mut text = format!("  {}:{}  {title}\n", printable(&path), step.line);
    if !step.source.is_empty() {
        let _ = writeln!(text, "    {}", styled(format!("| {}", printable(&step.source)), DIM));
    }
    for problem in &step.problems {
        text.push_str(&block(&problem.message, "    ", width));
        if let Some(difference) = &problem.difference {
            let names = if problem.snapshot.is_some() { ["snapshot", "this run"] } else { ["first time", "later"] };
            diff(&mut text, difference, names);
        }
        if let Some(path) = &problem.pending {
            let path = path.display().to_string();
            let _ =
                writeln!(text, "    the new result is in {}; --update accepts it if all cells agree", printable(&path));
        }
    }
    text
}

fn diff(out: &mut String, difference: &Difference, [old, new]: [&str; 2]) {
    let places = difference.places();
    if !places.is_empty() {
        let _ = writeln!(out, "    {places}");
    }
    let _ = writeln!(out, "      {}  {}", styled(format!("- {old}"), REMOVED), styled(format!("+ {new}"), ADDED));
    for line in difference.lines() {
        let _ = writeln!(out, "      {line}");
    }
}

fn trace(out: &mut String, lines: &[TraceLine], cell: &str, width: usize) {
    let _ = writeln!(out, "  {}", styled(format!("frames in {cell}"), DIM));
    if lines.is_empty() {
        let _ = writeln!(out, "    {}", styled("nothing", DIM));
    }
    for TraceLine { server, line } in lines.iter().filter(|it| it.line.kind.is_frame()) {
        let arrow = line.arrow();
        let at = styled(format!("{:>9.1} ms", line.at.as_secs_f64() * 1000.0), DIM);
        let cut = if line.is_cut() { format!("… ({} bytes)", line.length) } else { String::new() };
        let (server, frame) = (printable(server), format!("{}{cut}", printable(&line.text)));
        let _ = write!(out, "  {at} {arrow} {}", styled(&server, STRONG));
        if 19 + server.chars().count() + frame.chars().count() <= width {
            let _ = writeln!(out, " {frame}");
            continue;
        }
        out.push('\n');
        let pretty = serde_json::from_str::<Json>(&line.text).and_then(|frame| serde_json::to_string_pretty(&frame));
        for line in printable_lines(pretty.as_deref().unwrap_or(&frame)) {
            let indent = " ".repeat(6 + line.len() - line.trim_start().len());
            let options = textwrap::Options::new(width).initial_indent(&indent).subsequent_indent(&indent);
            for line in textwrap::wrap(line.trim_start(), options.break_words(false)) {
                let _ = writeln!(out, "{line}");
            }
        }
    }
}

/// What models have played, and what they do otherwise than before.
fn evals(out: &mut String, result: &RunResult, width: usize) {
    let Some(table) = eval::table(result) else { return };
    figures(out, &table.title, &table.heads, &table.rows);
    table.remarks.iter().for_each(|remark| out.push_str(&block(remark, "  ", width)));
    let sentences = eval::sentences(result);
    if !sentences.is_empty() {
        out.push('\n');
    }
    sentences.iter().for_each(|sentence| out.push_str(&block(sentence, "  ", width)));
}

/// A table whose columns are as wide as they must be.
fn figures(out: &mut String, title: &str, heads: &[&str], rows: &[(String, Vec<String>)]) {
    let _ = writeln!(out, "\n{}", styled(title, STRONG));
    let width = |text: &str| printable(text).chars().count();
    let name_width = rows.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
    let widths = heads.iter().enumerate().map(|(at, head)| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(at));
        cells.map(|cell| width(cell)).max().unwrap_or_default().max(head.len())
    });
    let widths: Vec<_> = widths.collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        cells.zip(&widths).map(|(cell, width)| format!("  {cell:>width$}")).collect::<String>()
    };
    let _ = writeln!(out, "  {}", styled(format!("{:name_width$}{}", "", line(&mut heads.iter().copied())), DIM));
    for (name, cells) in rows {
        let cells = line(&mut cells.iter().map(String::as_str));
        let _ = writeln!(out, "  {:name_width$}{cells}", printable(name));
    }
}

/// What of the servers was used, then what was not.
fn coverage(out: &mut String, result: &RunResult) {
    let Some(coverage) = &result.coverage else { return };
    figures(out, &coverage.title(), &Coverage::HEADS, &coverage.rows());
    let gaps = coverage.gaps();
    for gap in gaps.iter().take(GAPS) {
        let _ = writeln!(out, "  not covered: {}", printable(gap));
    }
    if gaps.len() > GAPS {
        let _ = writeln!(out, "  … and {} more, which are in the report as JSON", gaps.len() - GAPS);
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
    for missing in result.missing_shards() {
        let _ = writeln!(out, "{}", styled(format!("incomplete: {missing}"), BAD));
    }
    if let Some(shortfall) = result.coverage.as_ref().and_then(Coverage::shortfall) {
        let _ = writeln!(out, "{}", styled(shortfall, BAD));
    }
}
