//! The text report: a matrix by area, failures first, then what nobody has looked at.

use std::{collections::BTreeMap, fmt::Write};

use anstyle::Style;
use rehearse_protocol::{Direction, Version};

use super::{CheckResult, CheckedRow, CheckedServer, CheckedVersion, RowVerdict};
use crate::{
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG},
    text::printable,
};

/// How many subjects of a row are named.
const NAMED: usize = 5;
/// The width of a version's column.
const COLUMN: usize = 13;

pub(super) fn render(result: &CheckResult, width: usize, again: &str) -> String {
    let mut out = String::new();
    for server in &result.servers {
        head(&mut out, server, width);
        if server.versions.is_empty() {
            continue;
        }
        matrix(&mut out, server);
        findings(&mut out, server, width, RowVerdict::Fail);
        findings(&mut out, server, width, RowVerdict::Warn);
        untested(&mut out, server, width);
        verdicts(&mut out, server);
    }
    let _ = write!(out, "{:.1} s, seed {}", result.duration.as_secs_f64(), result.seed);
    let failed = result.servers.iter().flat_map(|it| &it.versions).flat_map(|it| &it.rows);
    if let Some(row) = failed.filter(|row| row.verdict <= RowVerdict::Warn).min_by_key(|row| row.verdict) {
        let _ = write!(out, "   again: {again} --only {}", row.id);
    }
    out.push('\n');
    out
}

fn styled(text: impl std::fmt::Display, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

fn head(out: &mut String, server: &CheckedServer, width: usize) {
    let name = match (&server.name, &server.server_version) {
        (Some(name), Some(version)) => format!("{} {}", printable(name), printable(version)),
        _ => "server".to_owned(),
    };
    let target = printable(&server.target);
    let started = format!("started in {} ms", server.started_in.as_millis());
    let line = format!("{}   {target}   {}   {started}", styled(&name, STRONG), server.transport);
    let plain = name.chars().count() + target.chars().count() + started.len() + 15;
    match plain > width {
        true => {
            let _ = writeln!(out, "{}\n  {target}\n  {}   {started}", styled(&name, STRONG), server.transport);
        }
        false => {
            let _ = writeln!(out, "{line}");
        }
    }
    if let Some(error) = &server.error {
        let _ = writeln!(out, "{} {}", styled("✗", BAD), printable(error));
    }
    out.push('\n');
}

fn area(row: &CheckedRow) -> &str {
    row.id.split('.').next().unwrap_or_default()
}

/// A line for each area, a column for each version.
fn matrix(out: &mut String, server: &CheckedServer) {
    let mut areas: Vec<&str> = Vec::new();
    for row in server.versions.iter().flat_map(|version| &version.rows) {
        if !areas.contains(&area(row)) {
            areas.push(area(row));
        }
    }
    let name = areas.iter().map(|area| area.len()).max().unwrap_or_default() + 2;
    let _ = write!(out, "{:name$}", "");
    for version in &server.versions {
        let _ = write!(out, "{:COLUMN$}", version.version);
    }
    out.push('\n');
    for it in areas {
        let cells: Vec<_> = server.versions.iter().map(|version| cell(version, it)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(out, "{it:name$}");
        for cell in cells {
            let (text, style) = cell.unwrap_or(("–".to_owned(), DIM));
            let pad = COLUMN.saturating_sub(text.chars().count());
            let _ = write!(out, "{}{:pad$}", styled(text, style), "");
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out.push('\n');
}

/// The mark and the counts of an area; `None` if nothing of it applies.
fn cell(version: &CheckedVersion, name: &str) -> Option<(String, Style)> {
    let mut counts: BTreeMap<RowVerdict, usize> = BTreeMap::new();
    for row in version.rows.iter().filter(|row| area(row) == name) {
        *counts.entry(row.verdict).or_default() += 1;
    }
    let count = |verdict| counts.get(&verdict).copied().unwrap_or_default();
    let (passed, warned, failed) = (count(RowVerdict::Pass), count(RowVerdict::Warn), count(RowVerdict::Fail));
    Some(match (failed, warned, passed, count(RowVerdict::NotTested)) {
        (0, 0, 0, 0) => return None,
        (0, 0, 0, untested) => (format!("· {untested}"), DIM),
        (0, 0, ..) => (format!("✓ {passed}"), GOOD),
        (0, ..) => (format!("! {passed}  {warned}"), DOUBTFUL),
        _ => (format!("✗ {passed}  {}", failed + warned), BAD),
    })
}

/// Each row with this verdict once, with the versions in which it has it.
fn findings(out: &mut String, server: &CheckedServer, width: usize, verdict: RowVerdict) {
    let mut found: Vec<(&CheckedRow, Vec<Version>)> = Vec::new();
    for version in &server.versions {
        for row in version.rows.iter().filter(|row| row.verdict == verdict) {
            match found.iter_mut().find(|(known, _)| known.id == row.id) {
                Some((_, versions)) => versions.push(version.version),
                None => found.push((row, vec![version.version])),
            }
        }
    }
    let (mark, style) = if verdict == RowVerdict::Fail { ("✗", BAD) } else { ("!", DOUBTFUL) };
    for (row, versions) in found {
        let versions = match (versions.len(), server.versions.len()) {
            (1, 1) => String::new(),
            (2, 2) => ", in both versions".to_owned(),
            (these, all) if these == all => format!(", in all {all} versions"),
            _ => format!(", {}", versions.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ")),
        };
        let level = row.level.unwrap_or_default();
        let _ = writeln!(
            out,
            "{} {}   {}",
            styled(mark, style),
            styled(&row.id, STRONG),
            styled(format!("{level}{versions}"), DIM)
        );
        wrapped(out, &row.rule, "  ", width);
        for violation in row.violations.iter().take(NAMED) {
            let subject =
                violation.subject.as_deref().map(|subject| format!("{}: ", printable(subject))).unwrap_or_default();
            wrapped(out, &format!("{subject}found {}", printable(&violation.found)), "    ", width);
        }
        if row.violation_count > NAMED {
            let _ = writeln!(out, "    … {} more", row.violation_count - NAMED);
        }
        for line in row.violations.first().map(|violation| violation.evidence.as_slice()).unwrap_or_default() {
            let arrow = if line.direction == Direction::ClientToServer { "→" } else { "←" };
            let _ = writeln!(out, "  {arrow} {}", shortened(&printable(&line.text), width.saturating_sub(4)));
        }
        if let Some(help) = &row.help {
            wrapped(out, &format!("help: {help}"), "  ", width);
        }
        let _ = writeln!(out, "  {}\n", styled(format!("spec: {}", row.spec), DIM));
    }
}

/// What was not tested, by reason.
fn untested(out: &mut String, server: &CheckedServer, width: usize) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in server.versions.iter().flat_map(|version| &version.rows) {
        if row.verdict == RowVerdict::NotTested {
            let ids = reasons.entry(row.reason.as_deref().unwrap_or_default()).or_default();
            if !ids.contains(&row.id.as_str()) {
                ids.push(&row.id);
            }
        }
    }
    let total: usize = reasons.values().map(Vec::len).sum();
    if total == 0 {
        return;
    }
    let _ = writeln!(out, "{}", styled(format!("Not tested: {total}"), DOUBTFUL));
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    for (reason, ids) in reasons {
        let shown: Vec<_> = ids.iter().take(3).copied().collect();
        let more = if ids.len() > shown.len() { ", …" } else { "" };
        wrapped(out, &format!("{}  {}: {}{more}", ids.len(), printable(reason), shown.join(", ")), "  ", width);
    }
    out.push('\n');
}

fn verdicts(out: &mut String, server: &CheckedServer) {
    for version in &server.versions {
        let count = |verdict| version.count(verdict);
        let (mark, style) = match (count(RowVerdict::Fail), count(RowVerdict::Warn)) {
            (0, 0) => ("✓", GOOD),
            (0, _) => ("!", DOUBTFUL),
            _ => ("✗", BAD),
        };
        let parts = [
            (count(RowVerdict::Fail), "failed"),
            (count(RowVerdict::Warn), if count(RowVerdict::Warn) == 1 { "warning" } else { "warnings" }),
            (count(RowVerdict::NotTested), "not tested"),
            (count(RowVerdict::Pass), "passed"),
            (count(RowVerdict::NotApplicable), "not applicable"),
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .filter(|(count, word)| *count > 0 || *word == "passed")
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let _ = writeln!(out, "{} {}   {}", styled(mark, style), version.version, parts.join(", "));
    }
}

fn wrapped(out: &mut String, text: &str, indent: &str, width: usize) {
    let further = format!("{indent}  ");
    let options = textwrap::Options::new(width.max(40)).initial_indent(indent).subsequent_indent(&further);
    for line in textwrap::wrap(text, options) {
        out.push_str(&line);
        out.push('\n');
    }
}

fn shortened(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}
