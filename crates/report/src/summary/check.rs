//! The section of `rehearse check`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    Alert, AlertRule, Case, Failure, Matrix, Outcome, Place, Remark, Row, RowGroup, Rule, Scan, Section, Suite,
    counted, counted_word, missing_case, missing_parts, readable,
};
use crate::{
    TraceLine, WireKind, WireLine,
    check::{CheckResult, CheckVerdict, CheckedServer, ConfigPlace, FoundViolation, JudgedCheck, areas},
    groups::grouped,
    text::printable,
};

/// How many violations of a check are named.
const NAMED: usize = 8;
/// How many ids of a reason are named.
const NAMED_IDS: usize = 3;

/// Why a server could not be checked, or not to the end.
fn errors(server: &CheckedServer) -> Vec<String> {
    match &server.error {
        Some(error) => vec![error.clone()],
        None => server.unfinished().into_iter().map(|text| format!("incomplete: {text}")).collect(),
    }
}

pub(super) fn section(result: &CheckResult) -> Section {
    let mut section = Section {
        title: "Checks",
        command: "rehearse check",
        unit: "checks",
        duration: result.duration,
        seed: Some(result.seed),
        verdict: result.verdict_of_checks(),
        suites: suites(result),
        scan: Some(scan(result)),
        ..Section::default()
    };
    section.facts = vec![
        ("started", result.started_at.clone()),
        ("duration", readable(result.duration)),
        ("seed", result.seed.to_string()),
        ("rehearse", result.rehearse.clone()),
    ];
    let names: Vec<_> = result.servers.iter().map(|server| name(server, &result.servers)).collect();
    section.subjects = result.servers.iter().map(subject).collect();
    section.remarks = remarks(result);
    let outcome = |verdict| outcome(verdict, result.strict);
    let stale = result.baseline.iter().flat_map(|baseline| baseline.stale.iter().map(move |entry| (baseline, entry)));
    let stale = stale.map(|(baseline, entry)| Failure {
        messages: vec![
            format!("`{entry}` in {} accepts a failure that is gone.", baseline.file.display()),
            "Remove the entry, or set `flaky: true` if the failure comes and goes.".to_owned(),
        ],
        ..Failure::new(Outcome::Failed, "stale entry of the baseline".to_owned())
    });
    let stale: Vec<_> = stale.collect();
    let stale_count = stale.len();
    let outcomes = result.checks().map(|check| outcome(check.verdict));
    section.counts = counted(outcomes.chain(stale.iter().map(|_| Outcome::Failed)));
    let errors = result.servers.iter().zip(&names).filter_map(|(server, name)| {
        let messages = errors(server);
        let again = vec![server.again_line()];
        (!messages.is_empty()).then(|| Failure { messages, again, ..Failure::new(Outcome::Error, name.clone()) })
    });
    let missing = result.missing_shards().into_iter().map(|missing| missing_parts(&missing));
    let errors: Vec<_> = errors.chain(missing).chain(stale).collect();
    let numbers = failures(result, &names, &outcome, &mut section.failures);
    let number_of = |id: &str, outcome: Outcome| numbers.get(&(id.to_owned(), outcome)).map(|at| at + errors.len());
    section.matrix = Some(matrix(result, &names, &outcome, &number_of));
    section.failures.splice(0..0, errors);
    let mut untested: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for check in result.checks().filter(|check| check.verdict == CheckVerdict::NotTested) {
        let ids = untested.entry(check.reason.as_deref().unwrap_or("no reason was given")).or_default();
        if !ids.contains(&check.id) {
            ids.push(check.id.clone());
        }
    }
    section.untested = untested.into_iter().map(|(reason, ids)| (reason.to_owned(), ids)).collect();
    section.untested.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    let stale = match stale_count {
        0 => None,
        1 => Some("1 stale entry of the baseline".to_owned()),
        count => Some(format!("{count} stale entries of the baseline")),
    };
    let parts = section.matrix.as_ref().and_then(rules_kept).into_iter().chain(stale);
    section.sentence = Some(parts.collect::<Vec<_>>().join(", ")).filter(|sentence| !sentence.is_empty());
    let words = section.untested.iter().flat_map(|(reason, _)| reason.split([' ', '`']));
    let options: BTreeSet<_> = words.filter(|word| word.starts_with("--")).collect();
    let options = options.into_iter().collect::<Vec<_>>().join(" and ");
    if let Some(sentence) = section.sentence.as_mut().filter(|_| !options.is_empty()) {
        sentence.push_str(&format!("; more is tried with {options}"));
    }
    if result.strict && result.totals.warnings > 0 {
        section.sentence = Some(format!("{}; --strict counts warnings as failures", section.conclusion()));
    }
    section
}

/// How many rules are kept, broken and not tried, whatever the version; `None` if none was tried.
fn rules_kept(matrix: &Matrix) -> Option<String> {
    let (mut kept, mut broken, mut warned, mut accepted, mut untried) = (0, 0, 0, 0, 0);
    for row in matrix.groups.iter().flat_map(|group| &group.rows) {
        let has = |outcome| row.cells.iter().flatten().any(|(it, _)| *it == outcome);
        match () {
            () if has(Outcome::Failed) => broken += 1,
            () if has(Outcome::Warning) => warned += 1,
            () if has(Outcome::Accepted) => accepted += 1,
            () if has(Outcome::Passed) || has(Outcome::Info) => kept += 1,
            () if has(Outcome::NotTested) => untried += 1,
            () => {}
        }
    }
    let all = [(kept, "kept"), (broken, "broken"), (warned, "with warnings"), (accepted, "accepted")];
    let all = all.into_iter().chain([(untried, "not tried")]).filter(|(count, _)| *count > 0).enumerate();
    let parts = all.map(|(at, (count, what))| match at {
        0 => format!("{} {what}", counted_word(count, "rule")),
        _ => format!("{count} {what}"),
    });
    (kept + broken + warned + accepted > 0).then(|| parts.collect::<Vec<_>>().join(", "))
}

/// Name, target and transport of a server.
fn subject(server: &CheckedServer) -> (String, Vec<String>) {
    let name = match (&server.name, &server.server_version) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        _ => "server".to_owned(),
    };
    let started = server.error.is_none() && !server.started_in.is_zero();
    let started = started.then(|| format!("started in {} ms", server.started_in.as_millis()));
    let details = [server.target.clone(), server.transport.to_string()].into_iter().chain(started);
    (name, details.collect())
}

/// What does not count, what is for information, and what is odd about the baseline.
fn remarks(result: &CheckResult) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let with = |verdict| {
        let checks = result.checks().filter(move |check| check.verdict == verdict);
        grouped(checks.map(|check| (check.id.as_str(), check)), |one, other| one == other)
    };
    let (of_sdk, of_baseline): (Vec<_>, Vec<_>) =
        with(CheckVerdict::Accepted).into_iter().partition(|(_, all)| all[0].sdk().is_some());
    let sdks = of_sdk.iter().map(|(id, all)| (all[0].sdk().unwrap_or_default(), (id, all[0])));
    for (sdk, checks) in grouped(sdks, |one, other| one == other) {
        let peer = if result.acts.is_empty() { "server" } else { "client" };
        let text = format!("{}; --sdk counts them, --verbose lists them.", sdk_remark(sdk, peer, checks.len()));
        remarks.push(Remark::new(Outcome::Accepted, text));
        let found = |check: &JudgedCheck| check.violations.first().map(FoundViolation::text).unwrap_or_default();
        let details = checks.into_iter().map(|(id, check)| format!("{id}: {}", found(check)));
        remarks.extend(details.map(|text| Remark::detail(Outcome::Accepted, text)));
    }
    remarks.extend(of_baseline.into_iter().map(|(id, all)| {
        let reason = all[0].reason.as_deref().unwrap_or_default();
        Remark::new(Outcome::Accepted, format!("{id} is accepted by the baseline: {reason}"))
    }));
    for (id, all) in with(CheckVerdict::Info) {
        let Some(check) = all.iter().find(|check| check.open_violations().next().is_some()) else { continue };
        let mut texts: Vec<_> = check.open_violations().take(NAMED).map(FoundViolation::text).collect();
        texts.extend((check.violation_count > NAMED).then(|| format!("… {} more", check.violation_count - NAMED)));
        let text = format!("{id}: {}", texts.join("; "));
        remarks.push(Remark { is_detail: check.area() != "safety", ..Remark::new(Outcome::Info, text) });
    }
    if let Some(baseline) = &result.baseline {
        let file = baseline.file.display();
        let expired = baseline.expired.iter();
        let expired = expired.map(|entry| format!("{file}: the date of {entry} has passed: it accepts nothing"));
        remarks.extend(expired.map(|text| Remark::new(Outcome::Warning, text)));
        let unknown = (!baseline.unknown.is_empty()).then(|| baseline.unknown.join(", "));
        let unknown = unknown.map(|ids| format!("{file}: no check covers {ids}"));
        remarks.extend(unknown.map(|text| Remark::new(Outcome::Warning, text)));
    }
    for server in &result.servers {
        let tools = server.uncalled_tools.iter().map(|tool| (tool.reason.as_str(), tool.name.as_str()));
        remarks.extend(grouped(tools, |one, other| one == other).into_iter().map(|(reason, names)| {
            Remark::new(Outcome::Info, format!("allowed tools were not called: {} ({reason})", names.join(", ")))
        }));
    }
    let lost: usize = result.servers.iter().map(|server| server.lost_stderr).sum();
    let lost = (lost > 0).then(|| format!("{} of standard error not kept", counted_word(lost, "line")));
    remarks.extend(lost.map(|text| Remark::new(Outcome::Info, text)));
    remarks
}

/// What is said of the violations that come from an SDK.
fn sdk_remark(sdk: &str, peer: &str, count: usize) -> String {
    let the = if sdk.ends_with("SDK") { "the " } else { "" };
    match count {
        1 => format!("1 violation comes from {the}{sdk}. You cannot mend it in your {peer}, so it does not count"),
        _ => format!(
            "{count} violations come from {the}{sdk}. You cannot mend them in your {peer}, so they do not count"
        ),
    }
}

/// The checks whose violations only follow from another one, in a sentence.
fn also<'r>(followers: impl Iterator<Item = &'r str>) -> Option<String> {
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

fn outcome(verdict: CheckVerdict, is_strict: bool) -> Outcome {
    match verdict {
        CheckVerdict::Fail => Outcome::Failed,
        CheckVerdict::Warn if is_strict => Outcome::Failed,
        CheckVerdict::Warn => Outcome::Warning,
        CheckVerdict::NotTested => Outcome::NotTested,
        CheckVerdict::Accepted => Outcome::Accepted,
        CheckVerdict::Info => Outcome::Info,
        CheckVerdict::Pass => Outcome::Passed,
        CheckVerdict::NotApplicable => Outcome::NotApplicable,
    }
}

/// A suite for each server and version, with a case for each check; and one for the entries of a baseline that are wrong.
fn suites(result: &CheckResult) -> Vec<Suite> {
    let simple = |name: &str, outcome, message: &str| Case {
        name: name.to_owned(),
        outcome,
        message: message.to_owned(),
        ..Case::default()
    };
    let mut suites = Vec::new();
    for server in &result.servers {
        suites.extend(server.versions.iter().map(|version| {
            let checks = version.checks.iter().filter(|check| check.verdict != CheckVerdict::NotApplicable);
            let cases = checks.map(|check| case(check, result.strict)).collect();
            Suite { name: format!("{} {}/{}", server.target, server.transport, version.version), cases }
        }));
        let errors = errors(server).join("; ");
        suites.extend((!errors.is_empty()).then(|| Suite {
            name: server.target.clone(),
            cases: vec![simple("connection", Outcome::Error, &errors)],
        }));
    }
    let missing = result.missing_shards().into_iter().map(|missing| missing_case(&missing));
    suites.extend(missing.map(|case| Suite { name: "rehearse check".to_owned(), cases: vec![case] }));
    if let Some(baseline) = result.baseline.as_ref().filter(|it| !it.stale.is_empty()) {
        let message = "this entry no longer matches anything";
        let cases = baseline.stale.iter().map(|entry| simple(entry, Outcome::Failed, message)).collect();
        suites.push(Suite { name: baseline.file.display().to_string(), cases });
    }
    suites
}

fn case(check: &JudgedCheck, is_strict: bool) -> Case {
    let outcome = outcome(check.verdict, is_strict);
    let message = match outcome {
        Outcome::Failed => check.message(),
        Outcome::Warning => format!("warning: {}", check.message()),
        other => format!("{}: {}", other.phrase(), check.reason.as_deref().unwrap_or_default()),
    };
    let details = if outcome == Outcome::Failed { details(check) } else { String::new() };
    Case { name: check.id.clone(), outcome, message, details, ..Case::default() }
}

/// The frames that show a violation, and what to do.
fn details(check: &JudgedCheck) -> String {
    let evidence = check.open_violations().flat_map(|it| &it.evidence);
    let evidence = evidence.map(|line| format!("{} {}", line.arrow(), printable(&line.text)));
    let help = check.help.iter().map(|help| format!("help: {help}"));
    let again = check.again.iter().map(|again| format!("again: {}", printable(again)));
    let lines = evidence.chain(help).chain([format!("spec: {}", check.spec)]).chain(again);
    lines.collect::<Vec<_>>().join("\n")
}

/// The violations at the entries of the servers in their config files, as a violation of a protocol has no line.
fn scan(result: &CheckResult) -> Scan {
    let mut rules: BTreeMap<&str, AlertRule> = BTreeMap::new();
    let mut alerts: BTreeMap<String, Alert> = BTreeMap::new();
    for server in &result.servers {
        let Some(place) = &server.place else { continue };
        for (check, versions) in violated(server) {
            rules.entry(&check.id).or_insert_with(|| AlertRule {
                id: check.id.clone(),
                outcome: outcome(check.verdict, false),
                rule: rule(check),
                area: check.area().to_owned(),
            });
            for violation in check.violations.iter().filter(|violation| violation.verdict <= CheckVerdict::Warn) {
                let subject = violation.subject.as_deref();
                let fingerprint = format!("{}/{}/{}", check.id, place.server, subject.unwrap_or_default());
                alerts.entry(fingerprint).or_insert_with_key(|key| alert(check, &versions, place, violation, key));
            }
        }
    }
    let servers: Vec<_> =
        result.servers.iter().filter_map(|server| Some(server.place.as_ref()?.server.as_str())).collect();
    Scan {
        category: Some(format!("rehearse/check/{}/", servers.join(","))),
        is_complete: result.servers.iter().all(|server| server.error.is_none() && server.unfinished().is_empty()),
        rules: rules.into_values().collect(),
        alerts: alerts.into_values().collect(),
    }
}

/// The violated checks of a server, each once, with the versions in which it is violated.
fn violated(server: &CheckedServer) -> Vec<(&JudgedCheck, Vec<&'static str>)> {
    let is_violated =
        |check: &JudgedCheck| matches!(check.verdict, CheckVerdict::Fail | CheckVerdict::Warn | CheckVerdict::Accepted);
    let checks = server.versions.iter().flat_map(|it| it.checks.iter().map(|check| (check, it.version.as_str())));
    grouped(checks.filter(|(check, _)| is_violated(check)), |one, other| one.id == other.id)
}

fn alert(
    check: &JudgedCheck,
    versions: &[&str],
    place: &ConfigPlace,
    violation: &FoundViolation,
    fingerprint: &str,
) -> Alert {
    let name = violation.subject.as_ref().unwrap_or(&place.server);
    Alert {
        rule: check.id.clone(),
        outcome: outcome(violation.verdict, false),
        message: format!("{} {} (MCP {})", check.rule, violation.text(), versions.join(", ")),
        place: Place { file: place.file.clone(), line: place.line, column: Some(place.column), end: None },
        subject: Some([name.clone(), format!("{}/{name}", place.server)]),
        fingerprint: Some(fingerprint.to_owned()),
        accepted: violation.accepted.clone(),
    }
}

/// The name of a server among others.
fn name(server: &CheckedServer, all: &[CheckedServer]) -> String {
    let name = server.name.as_deref().unwrap_or(&server.target);
    let is_shared = all.iter().filter(|other| other.name.as_deref().unwrap_or(&other.target) == name).count() > 1;
    if is_shared { format!("{name} ({})", server.transport) } else { name.to_owned() }
}

/// The violated checks, each once with all its places; returns the index of each.
fn failures(
    result: &CheckResult,
    names: &[String],
    outcome: &dyn Fn(CheckVerdict) -> Outcome,
    failures: &mut Vec<Failure>,
) -> HashMap<(String, Outcome), usize> {
    let mut found: Vec<((String, Outcome), Failure)> = Vec::new();
    for (server, name) in result.servers.iter().zip(names) {
        for version in &server.versions {
            for check in version.checks.iter().filter(|check| check.verdict <= CheckVerdict::Warn) {
                let (key, place) =
                    ((check.id.clone(), outcome(check.verdict)), format!("{name} in {}", version.version));
                match found.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, failure)) => failure.places.push(place),
                    None => {
                        let mut failure = failure(check, name, key.1);
                        failure.messages.extend(also(version.followers(&check.id)));
                        failure.example.clone_from(&place);
                        failure.places.push(place);
                        found.push((key, failure));
                    }
                }
            }
        }
    }
    let versions: usize = result.servers.iter().map(|server| server.versions.len()).sum();
    for (_, failure) in &mut found {
        (failure.is_everywhere, failure.of) = (failure.places.len() == versions, "versions");
    }
    // What the author can mend stands above what comes from an SDK.
    found.sort_by_key(|(_, failure)| (failure.outcome, std::cmp::Reverse(failure.places.len())));
    let numbers = found.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
    failures.extend(found.into_iter().map(|(_, failure)| failure));
    numbers
}

/// A violated check.
pub(crate) fn failure(check: &JudgedCheck, server: &str, outcome: Outcome) -> Failure {
    let open: Vec<_> = check.open_violations().collect();
    let mut found = grouped(open.iter().map(|violation| (violation.text(), ())), String::eq);
    found.truncate(NAMED);
    let named: usize = found.iter().map(|(_, times)| times.len()).sum();
    let message = |(text, times): (String, Vec<()>)| match times.len() {
        1 => text,
        times => format!("{text} ({times} times)"),
    };
    let accepted = check.violations.len() - open.len();
    let more = check.violation_count.saturating_sub(named + accepted);
    let more = (more > 0).then(|| format!("and {}", counted_word(more, "more violation")));
    let accepted = (accepted > 0).then(|| format!("{} accepted", counted_word(accepted, "more violation")));
    let messages = check.reason.clone().into_iter().chain(found.into_iter().map(message)).chain(more).chain(accepted);
    let messages = messages.collect();
    let rule = rule(check);
    let evidence = open.first().map(|violation| &violation.evidence[..]).unwrap_or_default().iter().cloned();
    let wire =
        evidence.map(|line| TraceLine { server: server.to_owned(), line: decisive_first(line, &rule) }).collect();
    Failure {
        level: check.level.as_deref().map(ToOwned::to_owned),
        messages,
        rule: Some(rule),
        wire,
        again: check.again.clone().into_iter().collect(),
        ..Failure::new(outcome, check.id.clone())
    }
}

/// The line, with the headers that the rule is about before the others.
fn decisive_first(mut line: WireLine, rule: &Rule) -> WireLine {
    if line.kind == WireKind::HttpHead {
        let mut parts: Vec<_> = line.text.split("  ").collect();
        parts[1..].sort_by_key(|header| !rule.is_about(header));
        line.text = parts.join("  ");
    }
    line
}

fn rule(check: &JudgedCheck) -> Rule {
    Rule { text: check.rule.clone(), help: check.help.clone(), link: check.spec.clone() }
}

fn matrix(
    result: &CheckResult,
    names: &[String],
    outcome: &dyn Fn(CheckVerdict) -> Outcome,
    number_of: &dyn Fn(&str, Outcome) -> Option<usize>,
) -> Matrix {
    let mut columns = Vec::new();
    let mut checks: BTreeMap<&str, (&JudgedCheck, HashMap<usize, Outcome>)> = BTreeMap::new();
    for (server, name) in result.servers.iter().zip(names) {
        for version in &server.versions {
            for check in &version.checks {
                let (_, cells) = checks.entry(&check.id).or_insert_with(|| (check, HashMap::new()));
                cells.insert(columns.len(), outcome(check.verdict));
            }
            columns.push((format!("{name}, {}", server.transport), version.version.to_string()));
        }
    }
    let mut groups: Vec<RowGroup> = Vec::new();
    for (id, (check, cells)) in checks {
        let area = id.split('.').next().unwrap_or_default();
        let cell = |column: usize| {
            let outcome = *cells.get(&column)?;
            Some((outcome, number_of(id, outcome)))
        };
        let cells = (0..columns.len()).map(cell).collect();
        let row = Row { name: id.to_owned(), note: check.rule.clone(), cells, duration: None };
        match groups.last_mut().filter(|group| group.name == area) {
            Some(group) => group.rows.push(row),
            None => {
                let (name, title) = (area.to_owned(), areas::words(area).to_owned());
                groups.push(RowGroup { name, title, rows: vec![row] });
            }
        }
    }
    Matrix { columns, row: "check", groups }
}
