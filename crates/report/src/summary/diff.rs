//! The section of `rehearse diff`.

use std::collections::BTreeMap;

use rehearse_document::text::shortened;

use super::{Alert, AlertRule, Case, Failure, Outcome, Place, Remark, Rule, Scan, Section, Source, Suite, counted};
use crate::diff::{Change, ChangePlace, Class, DiffResult, Side};

/// How much of a value is shown.
const LONGEST: usize = 200;

pub(super) fn section(result: &DiffResult) -> Section {
    let outcomes = result.changes.iter().map(|change| outcome(result, change));
    let calls = result.refused_calls.iter().map(|_| of_calls(result));
    let mut section = Section {
        title: "Changes",
        command: "rehearse diff",
        unit: "changes",
        verdict: result.verdict,
        counts: counted(outcomes.chain(calls)),
        suites: vec![suite(result)],
        scan: Some(scan(result)),
        ..Section::default()
    };
    let name = |side: &Side| match &side.server {
        Some(server) => format!("{} ({server})", side.name),
        None => side.name.clone(),
    };
    section.subjects = vec![(format!("{} → {}", name(&result.old), name(&result.new)), Vec::new())];
    section.facts = vec![("rehearse", result.rehearse.clone())];
    let mut failures: Vec<Failure> = Vec::new();
    for change in &result.changes {
        if change.accepted.is_some() || !(change.class >= Class::Behaviour || result.fails(change)) {
            section.remarks.push(remark(result, change));
            continue;
        }
        let instance =
            change.instance.as_ref().map(|it| format!("For example {}.", shortened(&it.to_string(), LONGEST)));
        let source = |place: &ChangePlace| Source { path: place.file.clone(), line: place.line, lines: Vec::new() };
        failures.push(Failure {
            level: Some(class(change).to_owned()),
            messages: std::iter::once(change.message.clone()).chain(instance).collect(),
            source: change.place.as_ref().map(source),
            ..Failure::new(outcome(result, change), format!("{}: {}", change.subject, change.rule))
        });
    }
    for call in &result.refused_calls {
        let client = call.client.as_ref().map(|client| format!(" by {client}")).unwrap_or_default();
        failures.push(Failure {
            messages: vec![
                format!("{} × in {}{client}: {}.", call.count, call.trace, call.reason),
                format!("For example {}.", shortened(&call.arguments.to_string(), LONGEST)),
            ],
            ..Failure::new(of_calls(result), format!("{}: recorded calls", call.subject))
        });
    }
    failures.sort_by_key(|failure| failure.outcome);
    section.failures = failures;
    let stale = result.stale.iter().map(|entry| format!("accepted in the baseline, but no change: {entry}"));
    section.remarks.extend(stale.map(|text| Remark::new(Outcome::Failed, text)));
    section.sentence = Some(counts(result) + &result.advice.iter().map(|it| format!(". {it}")).collect::<String>());
    section
}

/// A change that is no failure.
fn remark(result: &DiffResult, change: &Change) -> Remark {
    let place = change.place.as_ref().map(|place| format!(", {}:{}", place.file, place.line)).unwrap_or_default();
    let accepted = change.accepted.as_ref().map(|reason| format!(" Accepted: {reason}")).unwrap_or_default();
    let Change { subject, message, rule, .. } = change;
    let text = format!("{subject}: {message} ({}, {rule}{place}){accepted}", class(change));
    let is_detail = change.accepted.is_some() || change.class == Class::Cosmetic;
    Remark { outcome: outcome(result, change), text, is_detail }
}

/// How many changes there are of each class.
fn counts(result: &DiffResult) -> String {
    let words = |class: Class| match (class, result.count(class)) {
        (_, 0) => None,
        (Class::Addition, count @ 2..) => Some(format!("{count} additions")),
        (class, count) => Some(format!("{count} {class}")),
    };
    let mut parts: Vec<_> = Class::ALL.into_iter().filter_map(words).collect();
    let possible = result.changes.iter().filter(|change| change.is_possible && change.accepted.is_none()).count();
    if let Some(first) = parts.first_mut().filter(|_| possible > 0) {
        first.push_str(&format!(" ({possible} possibly)"));
    }
    let accepted = result.changes.iter().filter(|change| change.accepted.is_some()).count();
    parts.extend((accepted > 0).then(|| format!("{accepted} accepted")));
    let changes = if parts.is_empty() { "no changes".to_owned() } else { parts.join(", ") };
    let refused: usize = result.refused_calls.iter().map(|call| call.count).sum();
    match result.calls {
        Some(calls) => format!("{changes}; {refused} of {calls} recorded calls would fail"),
        None => changes,
    }
}

fn class(change: &Change) -> &'static str {
    if change.is_possible { "possibly breaking" } else { change.class.as_str() }
}

fn outcome(result: &DiffResult, change: &Change) -> Outcome {
    match change.class {
        _ if change.accepted.is_some() => Outcome::Accepted,
        _ if result.fails(change) => Outcome::Failed,
        Class::Breaking | Class::Behaviour => Outcome::Warning,
        Class::Addition | Class::Cosmetic => Outcome::Info,
    }
}

fn of_calls(result: &DiffResult) -> Outcome {
    if result.fail_on.is_some() { Outcome::Failed } else { Outcome::Warning }
}

/// A case for each change, and one for all of them, so that no change is a pass.
fn suite(result: &DiffResult) -> Suite {
    let changes = result.changes.iter().map(|change| Case {
        name: format!("{}: {}", change.subject, change.rule),
        outcome: outcome(result, change),
        message: format!("{}: {}", class(change), change.message),
        details: change.instance.as_ref().map(|it| format!("for example {it}")).unwrap_or_default(),
        ..Case::default()
    });
    let calls = result.refused_calls.iter().map(|call| Case {
        name: format!("{}: recorded calls", call.subject),
        outcome: of_calls(result),
        message: call.reason.clone(),
        details: format!("{} × in {}: {}", call.count, call.trace, call.arguments),
        ..Case::default()
    });
    let stale = result.stale.iter().map(|entry| Case {
        name: format!("baseline: {entry}"),
        outcome: Outcome::Failed,
        message: "this entry no longer matches anything".to_owned(),
        ..Case::default()
    });
    let compared = Case { name: "compared".to_owned(), ..Case::default() };
    let cases = std::iter::once(compared).chain(changes).chain(calls).chain(stale);
    Suite { name: "rehearse diff".to_owned(), cases: cases.collect() }
}

/// The changes at their lines in a surface file.
fn scan(result: &DiffResult) -> Scan {
    let mut rules: BTreeMap<&str, AlertRule> = BTreeMap::new();
    let mut alerts = Vec::new();
    for change in result.changes.iter().filter(|change| change.class >= Class::Behaviour) {
        let Some(place) = &change.place else { continue };
        let outcome = outcome(result, change);
        let rule = rules.entry(&change.rule).or_insert_with(|| AlertRule {
            id: change.rule.clone(),
            outcome,
            rule: Rule { text: format!("{} ({})", change.rule, change.class), help: None, link: String::new() },
            area: "diff".to_owned(),
        });
        rule.outcome = rule.outcome.min(outcome);
        let fingerprint = format!(
            "{}/{}/{}",
            change.rule,
            change.subject,
            change.old.as_ref().or(change.new.as_ref()).map_or("", |it| it)
        );
        alerts.push(Alert {
            rule: change.rule.clone(),
            outcome,
            message: format!("{}: {}", change.subject, change.message),
            place: Place { file: place.file.clone(), line: place.line, column: None, end: None },
            subject: Some([change.subject.clone(), change.subject.clone()]),
            fingerprint: Some(fingerprint),
            accepted: change.accepted.clone(),
        });
    }
    Scan {
        category: Some("rehearse/diff/".to_owned()),
        is_complete: true,
        rules: rules.into_values().collect(),
        alerts,
    }
}
