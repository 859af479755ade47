//! The text report. What matters most comes last, where a terminal shows it: a matrix by area, what was not tested, what
//! comes from an SDK, the warnings, the failures with their frames, the verdict.

use std::{collections::BTreeMap, fmt::Write};

use rehearse_protocol::Direction;

use super::{
    BaselineUse, CheckResult, CheckTotals, CheckVerdict, CheckedServer, JudgedCheck,
    matrix::{Column, has_one_transport, matrix},
};
use crate::{
    Layout, Verdict, WireLine,
    groups::grouped,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    profile,
    text::{printable, printable_lines, wrapped},
};

/// How many subjects of a check are named.
const NAMED: usize = 5;
/// How many ids of a reason are named.
const NAMED_IDS: usize = 3;
/// How many reasons are named for which something was not tested.
const NAMED_REASONS: usize = 3;

pub(crate) fn render(result: &CheckResult, layout: &Layout) -> String {
    let width = layout.width;
    let mut out = String::new();
    for servers in groups(&result.servers) {
        let columns: Vec<_> = servers.iter().flat_map(|server| Column::of(server)).collect();
        servers.iter().for_each(|server| head(&mut out, server, width));
        out.push('\n');
        if columns.is_empty() {
            continue;
        }
        matrix(&mut out, &columns, width);
        untested(&mut out, &columns, layout);
        accepted(&mut out, &columns, layout);
        information(&mut out, &columns, layout);
        findings(&mut out, &columns, width, CheckVerdict::Warn);
        findings(&mut out, &columns, width, CheckVerdict::Fail);
        let is_named = servers.len() > 1 || result.servers.len() > 1;
        columns.iter().for_each(|column| verdict(&mut out, column, is_named, width));
        for unanswered in servers.iter().flat_map(|server| &server.unanswered) {
            let text = format!("{} was not checked: {}", unanswered.version, printable(&unanswered.reason));
            wrapped(&mut out, &format!("{} {text}", styled("!", DOUBTFUL)), "", width);
        }
        if let Some(text) = servers.iter().find_map(|server| server.unfinished()) {
            wrapped(&mut out, &format!("{} {text}", styled("!", DOUBTFUL)), "", width);
        }
        servers.iter().for_each(|server| profile::human::render(&mut out, &server.profiles, layout));
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
    let mut checks = checks_with(columns, verdict);
    // What the author can mend comes first.
    checks.sort_by_key(|(check, _)| check.sdk().is_some());
    for (check, these) in checks {
        let rule = textwrap::wrap(&check.rule, width.saturating_sub(2).max(40));
        for (number, line) in rule.iter().enumerate() {
            let mark = if number == 0 { styled(mark, style) } else { " ".to_owned() };
            let _ = writeln!(out, "{mark} {}", styled(line, STRONG));
        }
        let level = format!("{}{}", check.level.as_deref().unwrap_or_default(), where_found(&these, columns));
        let _ = writeln!(out, "  {}", styled(format!("{}   {level}", check.id), DIM));
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
            let do_not = if accepted == 1 { "does not" } else { "do not" };
            let _ = writeln!(out, "    {}", styled(format!("{accepted} more {do_not} count"), DIM));
        }
        for line in open.first().map(|violation| violation.evidence.as_slice()).unwrap_or_default() {
            frame(out, line, width);
        }
        if let Some(also) = also(these.iter().flat_map(|column| column.version.followers(&check.id))) {
            wrapped(out, &also, "  ", width);
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

/// The checks whose violations only follow from another one, in a sentence.
pub(crate) fn also<'r>(followers: impl Iterator<Item = &'r str>) -> Option<String> {
    let ids: Vec<_> = grouped(followers.map(|id| (id, ())), |one, other| one == other);
    let ids: Vec<_> = ids.into_iter().map(|(id, _)| id).collect();
    let more = if ids.len() > NAMED_IDS { ", …" } else { "" };
    let named = ids.iter().take(NAMED_IDS).copied().collect::<Vec<_>>().join(", ");
    match ids.len() {
        0 => None,
        1 => Some(format!("also seen by {named}")),
        count => Some(format!("also seen by {count} checks: {named}{more}")),
    }
}

/// What is violated and does not count: what comes from an SDK, and what the baseline accepts.
fn accepted(out: &mut String, columns: &[Column<'_>], layout: &Layout) {
    let checks = checks_with(columns, CheckVerdict::Accepted);
    let (of_sdk, of_baseline): (Vec<_>, Vec<_>) = checks.into_iter().partition(|(check, _)| check.sdk().is_some());
    let of_sdk =
        grouped(of_sdk.iter().map(|(check, these)| (check.sdk().unwrap_or_default(), (check, these))), |one, other| {
            one == other
        });
    for (sdk, checks) in of_sdk {
        let text = format!("{}; --verbose lists them, --sdk counts them.", sdk_remark(sdk, checks.len()));
        wrapped(out, &format!("{} {text}", styled("~", DIM)), "", layout.width);
        for (check, these) in checks.iter().filter(|_| layout.is_verbose) {
            let found = check.violations.first().map(|it| printable(&it.text()).into_owned()).unwrap_or_default();
            wrapped(out, &format!("{}{}: {found}", check.id, where_found(these, columns)), "  ", layout.width);
        }
        out.push('\n');
    }
    if of_baseline.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", styled(format!("Accepted by the baseline: {}", of_baseline.len()), DIM));
    for (check, _) in of_baseline {
        let reason = check.reason.as_deref().unwrap_or_default();
        wrapped(out, &format!("{}  {}", check.id, printable(reason)), "  ", layout.width);
    }
    out.push('\n');
}

/// What is found and counts for nothing: harm, and with `--verbose` all else.
fn information(out: &mut String, columns: &[Column<'_>], layout: &Layout) {
    let mut checks = checks_with(columns, CheckVerdict::Info);
    let is_shown = |check: &JudgedCheck| layout.is_verbose || check.area() == "safety";
    checks.retain(|(check, _)| is_shown(check) && check.open_violations().next().is_some());
    if checks.is_empty() {
        return;
    }
    let _ = writeln!(out, "{}", styled(format!("For information: {}", checks.len()), DIM));
    for (check, these) in checks {
        let texts = check.open_violations().take(NAMED).map(|it| printable(&it.text()).into_owned());
        let text = texts.collect::<Vec<_>>().join("; ");
        let more = check.violation_count.saturating_sub(NAMED);
        let more = if more > 0 { format!("; … {more} more") } else { String::new() };
        wrapped(out, &format!("{}{}: {text}{more}", check.id, where_found(&these, columns)), "  ", layout.width);
    }
    out.push('\n');
}

/// What is said of the violations that come from an SDK.
pub(crate) fn sdk_remark(sdk: &str, count: usize) -> String {
    match count {
        1 => format!("1 violation comes from the {sdk}. You cannot mend it in your server, so it does not count"),
        _ => {
            format!("{count} violations come from the {sdk}. You cannot mend them in your server, so they do not count")
        }
    }
}

/// What was not tested, by reason: first what the user can change.
fn untested(out: &mut String, columns: &[Column<'_>], layout: &Layout) {
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
    reasons.sort_by_key(|(reason, ids)| (!reason.contains("--"), std::cmp::Reverse(ids.len())));
    let shown = if layout.is_verbose { reasons.len() } else { NAMED_REASONS };
    for (reason, ids) in reasons.iter().take(shown) {
        let reason = printable(reason);
        match layout.is_verbose {
            true => wrapped(out, &format!("{:>3}  {reason}: {}", ids.len(), ids.join(", ")), "  ", layout.width),
            false => {
                let line = format!("  {:>3}  {reason}", ids.len());
                let _ = writeln!(out, "{}", shortened(&line, layout.width.max(40)));
            }
        }
    }
    let more: usize = reasons.iter().skip(shown).map(|(_, ids)| ids.len()).sum();
    if more > 0 {
        let _ = writeln!(out, "  {more:>3}  for other reasons; --verbose lists all of them");
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
    for missing in result.missing_shards() {
        let _ = writeln!(out, "{}", styled(format!("incomplete: {missing}"), BAD));
    }
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
