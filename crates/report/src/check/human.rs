//! The text report: a matrix by area, failures first with their frames, then what was not tested.

use std::{collections::BTreeMap, fmt::Write};

use rehearse_protocol::Direction;

use super::{
    BaselineUse, CheckResult, CheckTotals, CheckVerdict, CheckedServer, JudgedCheck,
    matrix::{Column, has_one_transport, matrix},
};
use crate::{
    Verdict, WireLine,
    groups::grouped,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    text::{printable, printable_lines, wrapped},
};

/// How many subjects of a check are named.
const NAMED: usize = 5;
/// How many ids of a reason are named.
const NAMED_IDS: usize = 3;

pub(crate) fn render(result: &CheckResult, width: usize) -> String {
    let mut out = String::new();
    for servers in groups(&result.servers) {
        let columns: Vec<_> = servers.iter().flat_map(|server| Column::of(server)).collect();
        servers.iter().for_each(|server| head(&mut out, server, width));
        out.push('\n');
        if columns.is_empty() {
            continue;
        }
        matrix(&mut out, &columns, width);
        findings(&mut out, &columns, width, CheckVerdict::Fail);
        findings(&mut out, &columns, width, CheckVerdict::Warn);
        accepted(&mut out, &columns, width);
        untested(&mut out, &columns, width);
        let is_named = servers.len() > 1 || result.servers.len() > 1;
        columns.iter().for_each(|column| verdict(&mut out, column, is_named, width));
        for unanswered in servers.iter().flat_map(|server| &server.unanswered) {
            let text = format!("{} was not checked: {}", unanswered.version, printable(&unanswered.reason));
            wrapped(&mut out, &format!("{} {text}", styled("!", DOUBTFUL)), "", width);
        }
        if let Some(text) = servers.iter().find_map(|server| server.unfinished()) {
            wrapped(&mut out, &format!("{} {text}", styled("!", DOUBTFUL)), "", width);
        }
        if result.servers.len() > servers.len() {
            out.push('\n');
        }
    }
    if let Some(baseline) = &result.baseline {
        self::baseline(&mut out, baseline);
    }
    conclusion(&mut out, result);
    out
}

/// Servers that give themselves the same name and version, as one over several transports does.
fn groups(servers: &[CheckedServer]) -> Vec<Vec<&CheckedServer>> {
    let mut groups: Vec<Vec<&CheckedServer>> = Vec::new();
    for server in servers {
        let is_same = |group: &&mut Vec<&CheckedServer>| {
            group.first().is_some_and(|it| {
                it.name.is_some() && it.name == server.name && it.server_version == server.server_version
            }) && group.iter().all(|it| it.transport != server.transport)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(server),
            None => groups.push(vec![server]),
        }
    }
    groups
}

/// Name, target and transport; why nothing could be checked.
fn head(out: &mut String, server: &CheckedServer, width: usize) {
    let name = match (&server.name, &server.server_version) {
        (Some(name), Some(version)) => format!("{} {}", printable(name), printable(version)),
        _ => "server".to_owned(),
    };
    let target = printable(&server.target);
    let started = match server.error {
        Some(_) => String::new(),
        None if server.started_in.is_zero() => String::new(),
        None => format!("   started in {} ms", server.started_in.as_millis()),
    };
    let length = name.chars().count() + target.chars().count() + started.chars().count() + 14;
    let _ = match length > width {
        true => writeln!(out, "{}\n  {target}\n  {}{started}", styled(&name, STRONG), server.transport),
        false => writeln!(out, "{}   {target}   {}{started}", styled(&name, STRONG), server.transport),
    };
    let Some(error) = &server.error else { return };
    for (number, line) in printable_lines(error).enumerate() {
        match number {
            0 => wrapped(out, &format!("{} {line}", styled("✗", BAD)), "", width),
            _ => drop(writeln!(out, "  {line}")),
        }
    }
}

/// Each check with this verdict once, with the columns in which it has it.
fn checks_with<'c>(columns: &'c [Column<'_>], verdict: CheckVerdict) -> Vec<(&'c JudgedCheck, Vec<&'c Column<'c>>)> {
    let checks = columns.iter().flat_map(|column| column.version.checks.iter().map(move |check| (check, column)));
    grouped(checks.filter(|(check, _)| check.verdict == verdict), |one, other| one.id == other.id)
}

/// The columns in which something was found, if there is a choice.
fn where_found(these: &[&Column<'_>], all: &[Column<'_>]) -> String {
    match (these.len(), all.len()) {
        (1, 1) => String::new(),
        (2, 2) => ", in both".to_owned(),
        (these, all) if these == all => format!(", in all {all}"),
        _ => {
            let name = |column: &&Column<'_>| match has_one_transport(all) {
                true => column.version.version.to_string(),
                false => column.name(),
            };
            format!(", {}", these.iter().map(name).collect::<Vec<_>>().join(", "))
        }
    }
}

fn findings(out: &mut String, columns: &[Column<'_>], width: usize, verdict: CheckVerdict) {
    let (mark, style) = if verdict == CheckVerdict::Fail { ("✗", BAD) } else { ("!", DOUBTFUL) };
    for (check, these) in checks_with(columns, verdict) {
        let level = format!("{}{}", check.level.as_deref().unwrap_or_default(), where_found(&these, columns));
        let _ = writeln!(out, "{} {}   {}", styled(mark, style), styled(&check.id, STRONG), styled(level, DIM));
        wrapped(out, &check.rule, "  ", width);
        if let Some(reason) = &check.reason {
            wrapped(out, &printable(reason), "    ", width);
        }
        let open: Vec<_> = check.open_violations().collect();
        let texts = open.iter().map(|violation| (printable(&violation.text()).into_owned(), ()));
        let mut named = grouped(texts, String::eq);
        named.truncate(NAMED);
        for (text, times) in &named {
            let times = if times.len() > 1 { format!(" ({} times)", times.len()) } else { String::new() };
            wrapped(out, &format!("{text}{times}"), "    ", width);
        }
        let accepted = check.violations.len() - open.len();
        let named: usize = named.iter().map(|(_, times)| times.len()).sum();
        let more = check.violation_count.saturating_sub(named + accepted);
        if more > 0 {
            let _ = writeln!(out, "    … {more} more");
        }
        if accepted > 0 {
            let _ = writeln!(out, "    {}", styled(format!("{accepted} accepted by the baseline"), DIM));
        }
        for line in open.first().map(|violation| violation.evidence.as_slice()).unwrap_or_default() {
            frame(out, line, width);
        }
        if let Some(help) = &check.help {
            wrapped(out, &format!("help: {help}"), "  ", width);
        }
        let _ = writeln!(out, "  {}", styled(format!("spec: {}", check.spec), DIM));
        if let Some(again) = &check.again {
            let _ = writeln!(out, "  {}", styled(format!("again: {}", printable(again)), DIM));
        }
        out.push('\n');
    }
}

/// A frame on one line, shortened around what violates the rule, which is marked below.
fn frame(out: &mut String, line: &WireLine, width: usize) {
    let room = width.saturating_sub(4).max(20);
    // What the client sent is not what violates the rule.
    let mark = line.mark.as_deref().filter(|_| line.direction == Direction::ServerToClient);
    let (before, marked, after) = match mark.and_then(|mark| line.text.split_once(mark).zip(Some(mark))) {
        Some(((before, after), marked)) => (printable(before), printable(marked), printable(after)),
        None => (printable(&line.text), "".into(), "".into()),
    };
    let wide = |text: &str| textwrap::core::display_width(text);
    let is_whole = line.offset == 0 && wide(&before) + wide(&marked) + wide(&after) <= room;
    // A third of the room is for what comes before.
    let keeps = if marked.is_empty() { room } else { room.saturating_sub(wide(&marked)).min(room / 3) };
    let before = match is_whole || (line.offset == 0 && wide(&before) <= keeps) {
        true => before.into_owned(),
        false if marked.is_empty() => shortened(&before, room),
        false => format!("…{}", last(&before, keeps.saturating_sub(1))),
    };
    let marked = shortened(&marked, room.saturating_sub(wide(&before)));
    let after = shortened(&after, room.saturating_sub(wide(&before) + wide(&marked)));
    let cut = if line.is_cut() && is_whole { "…" } else { "" };
    let _ = writeln!(out, "  {} {before}{marked}{after}{cut}", line.arrow());
    if !marked.is_empty() {
        let carets = "^".repeat(wide(&marked));
        let _ = writeln!(out, "    {:1$}{2}", "", wide(&before), styled(carets, BAD));
    }
    if let Some(hex) = &line.hex {
        let _ = writeln!(out, "    {}", styled(format!("bytes: {}", shortened(hex, room.saturating_sub(7))), DIM));
    }
}

/// What the baseline accepts, by its reason.
fn accepted(out: &mut String, columns: &[Column<'_>], width: usize) {
    let checks = checks_with(columns, CheckVerdict::Accepted);
    if checks.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", styled(format!("Accepted by the baseline: {}", checks.len()), DIM));
    for (check, _) in checks {
        let reason = check.reason.as_deref().unwrap_or_default();
        wrapped(out, &format!("{}  {}", check.id, printable(reason)), "  ", width);
    }
    out.push('\n');
}

/// What was not tested, by reason.
fn untested(out: &mut String, columns: &[Column<'_>], width: usize) {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (check, _) in checks_with(columns, CheckVerdict::NotTested) {
        reasons.entry(check.reason.as_deref().unwrap_or_default()).or_default().push(&check.id);
    }
    let total: usize = reasons.values().map(Vec::len).sum();
    if total == 0 {
        return;
    }
    let _ = writeln!(out, "{}", styled(format!("Not tested: {total}"), DOUBTFUL));
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    for (reason, ids) in reasons {
        let shown = ids.iter().take(NAMED_IDS).copied().collect::<Vec<_>>().join(", ");
        let more = if ids.len() > NAMED_IDS { ", …" } else { "" };
        wrapped(out, &format!("{:>3}  {}: {shown}{more}", ids.len(), printable(reason)), "  ", width);
    }
    out.push('\n');
}

/// The verdict on one version over one transport.
fn verdict(out: &mut String, column: &Column<'_>, is_named: bool, width: usize) {
    let totals = CheckTotals::count(column.version.checks.iter());
    let (mark, style) = match totals {
        CheckTotals { failed: 1.., .. } => ("✗", BAD),
        CheckTotals { warnings: 1.., .. } => ("!", DOUBTFUL),
        totals if totals.is_tested() => ("✓", GOOD),
        _ => ("·", DIM),
    };
    let name = if is_named { column.name() } else { column.version.version.to_string() };
    wrapped(out, &format!("{} {name}   {}", styled(mark, style), counts(totals)), "", width);
}

/// The counts that are not zero, in words. What was not tested stands before what passed.
fn counts(totals: CheckTotals) -> String {
    let warnings = if totals.warnings == 1 { "warning" } else { "warnings" };
    let parts = [
        (totals.failed, "failed"),
        (totals.warnings, warnings),
        (totals.not_tested, "not tested"),
        (totals.accepted, "accepted"),
        (totals.passed, "passed"),
        (totals.info, "for information"),
        (totals.not_applicable, "not applicable"),
    ];
    let parts = parts.into_iter().filter(|(count, word)| *count > 0 || *word == "passed");
    parts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

fn baseline(out: &mut String, baseline: &BaselineUse) {
    let file = printable(&baseline.file.to_string_lossy()).into_owned();
    for entry in &baseline.stale {
        let stale = styled("✗", BAD);
        let _ = writeln!(out, "{stale} {file}: {} no longer matches anything: remove it", printable(entry));
    }
    for entry in &baseline.expired {
        let expired = styled("!", DOUBTFUL);
        let _ = writeln!(out, "{expired} {file}: the date of {} has passed: it accepts nothing", printable(entry));
    }
    if !baseline.unknown.is_empty() {
        let unknown = baseline.unknown.join(", ");
        let _ = writeln!(out, "{} {file}: no check covers {}", styled("!", DOUBTFUL), printable(&unknown));
    }
}

/// What the exit code says.
fn conclusion(out: &mut String, result: &CheckResult) {
    let (word, style) = match result.verdict {
        Verdict::Passed if result.totals.warnings > 0 => ("passed, with warnings", DOUBTFUL),
        Verdict::Passed => ("passed", GOOD),
        Verdict::Failed if result.totals.failed == 0 && result.strict => ("failed, because of --strict", BAD),
        Verdict::Failed => ("failed", BAD),
        Verdict::Incomplete => ("incomplete: not everything was tried", DOUBTFUL),
        Verdict::CannotRun => ("not everything could be checked", BAD),
        Verdict::NothingTested => ("nothing was tested", DOUBTFUL),
    };
    let _ = write!(out, "{}", styled(word, style));
    if result.servers.len() > 1 {
        let _ = write!(out, "   {}", counts(result.totals));
    }
    let _ = writeln!(out, "   {:.1} s, seed {}", result.duration.as_secs_f64(), result.seed);
}

/// The beginning of a text.
fn shortened(text: &str, width: usize) -> String {
    if textwrap::core::display_width(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The end of a text.
fn last(text: &str, count: usize) -> String {
    let skipped = text.chars().count().saturating_sub(count);
    text.chars().skip(skipped).collect()
}
