//! The section of `rehearse check`.

use std::collections::{BTreeMap, HashMap};

use super::{
    Alert, AlertRule, Case, Failure, Matrix, Outcome, Place, Row, RowGroup, Rule, Scan, Section, Suite, counted,
    missing_case, missing_parts, readable,
};
use crate::{
    TraceLine,
    check::{CheckResult, CheckVerdict, CheckedServer, ConfigPlace, FoundViolation, JudgedCheck, human},
    groups::grouped,
    text::printable,
};

/// How many violations of a check are named.
const NAMED: usize = 8;

/// What is said of a server whose run did not finish.
fn incomplete(server: &CheckedServer) -> Option<String> {
    server.unfinished().map(|why| format!("incomplete: {why}"))
}

pub(super) fn section(result: &CheckResult) -> Section {
    let mut section = Section {
        title: "Checks",
        command: "rehearse check",
        unit: "checks",
        duration: result.duration,
        verdict: result.verdict,
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
    for (server, name) in result.servers.iter().zip(&names) {
        let versions: Vec<_> = server.versions.iter().map(|it| it.version.as_str()).collect();
        let text = format!("{} over {}, {}", server.target, server.transport, versions.join(", "));
        section.remarks.push(format!("{name}: {text}"));
        let unanswered =
            server.unanswered.iter().map(|it| format!("{name}: {} not checked: {}", it.version, it.reason));
        section.remarks.extend(unanswered);
    }
    let sdks = result.checks().filter(|check| check.verdict == CheckVerdict::Accepted);
    let sdks = grouped(sdks.filter_map(|check| Some((check.sdk()?, check.id.as_str()))), |one, other| one == other);
    for (sdk, mut ids) in sdks {
        ids.sort_unstable();
        ids.dedup();
        section.remarks.push(format!("{}: {}", human::sdk_remark(sdk, ids.len()), ids.join(", ")));
    }
    let outcome = |verdict| outcome(verdict, result.strict);
    let stale = result.baseline.iter().flat_map(|baseline| baseline.stale.iter().map(move |entry| (baseline, entry)));
    let stale = stale.map(|(baseline, entry)| Failure {
        messages: vec![format!("`{entry}` in {} accepts a failure that is gone; remove it.", baseline.file.display())],
        ..Failure::new(Outcome::Failed, "stale entry of the baseline".to_owned())
    });
    let stale: Vec<_> = stale.collect();
    let outcomes = result.checks().map(|check| outcome(check.verdict));
    section.counts = counted(outcomes.chain(stale.iter().map(|_| Outcome::Failed)));
    let errors = result.servers.iter().zip(&names).filter_map(|(server, name)| {
        let error = server.error.clone().or_else(|| incomplete(server))?;
        let again = vec![server.again.clone()];
        Some(Failure { messages: vec![error], again, ..Failure::new(Outcome::Error, name.clone()) })
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
    section
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
        suites.extend(server.error.clone().or_else(|| incomplete(server)).map(|error| Suite {
            name: server.target.clone(),
            cases: vec![simple("connection", Outcome::Error, &error)],
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
        is_complete: result.servers.iter().all(|server| server.error.is_none() && server.unfinished().is_none()),
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
                        failure.messages.extend(human::also(version.followers(&check.id)));
                        failure.example.clone_from(&place);
                        failure.places.push(place);
                        found.push((key, failure));
                    }
                }
            }
        }
    }
    found.sort_by_key(|(_, failure)| (failure.outcome, std::cmp::Reverse(failure.places.len())));
    let numbers = found.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
    failures.extend(found.into_iter().map(|(_, failure)| failure));
    numbers
}

/// A violated check.
pub(super) fn failure(check: &JudgedCheck, server: &str, outcome: Outcome) -> Failure {
    let open: Vec<_> = check.violations.iter().filter(|violation| violation.accepted.is_none()).collect();
    let mut messages: Vec<String> = Vec::new();
    for text in open.iter().map(|violation| violation.text()) {
        if !messages.contains(&text) {
            messages.push(text);
        }
    }
    messages.truncate(NAMED);
    let more = check.violation_count.saturating_sub(messages.len());
    messages.extend(
        (more > 0 && !messages.is_empty())
            .then(|| format!("and {more} more violation{}", if more == 1 { "" } else { "s" })),
    );
    messages.extend(check.reason.clone());
    let evidence = open.first().map(|violation| &violation.evidence[..]).unwrap_or_default();
    Failure {
        level: check.level.as_deref().map(ToOwned::to_owned),
        messages,
        rule: Some(rule(check)),
        wire: evidence.iter().map(|line| TraceLine { server: server.to_owned(), line: line.clone() }).collect(),
        again: check.again.clone().into_iter().collect(),
        ..Failure::new(outcome, check.id.clone())
    }
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
            None => groups.push(RowGroup { name: area.to_owned(), rows: vec![row] }),
        }
    }
    Matrix { columns, groups }
}
