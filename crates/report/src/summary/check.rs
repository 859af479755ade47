//! The section of `rehearse check`.

use std::collections::{BTreeMap, HashMap};

use super::{Failure, Matrix, Outcome, Row, RowGroup, Rule, Section, counted, readable};
use crate::{
    TraceLine,
    check::{CheckResult, CheckedRow, CheckedServer, RowVerdict},
};

/// How many violations of a row are named.
const NAMED: usize = 8;

pub(super) fn section(result: &CheckResult) -> Section {
    let mut section = Section::new("Checks", "rows", result.verdict);
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
    let outcome = |verdict| match outcome(verdict) {
        Outcome::Warning if result.strict => Outcome::Failed,
        outcome => outcome,
    };
    let stale = result.baseline.iter().flat_map(|baseline| baseline.stale.iter().map(move |entry| (baseline, entry)));
    let stale = stale.map(|(baseline, entry)| Failure {
        messages: vec![format!("`{entry}` in {} accepts a failure that is gone; remove it.", baseline.file.display())],
        ..Failure::new(Outcome::Failed, "stale entry of the baseline".to_owned())
    });
    let stale: Vec<_> = stale.collect();
    let of_rows = result.rows().map(|row| outcome(row.verdict));
    section.counts = counted(of_rows.chain(stale.iter().map(|_| Outcome::Failed)));
    let errors = result.servers.iter().zip(&names).filter_map(|(server, name)| {
        let error = server.error.clone()?;
        let again = vec![server.again.clone()];
        Some(Failure { messages: vec![error], again, ..Failure::new(Outcome::Error, name.clone()) })
    });
    let errors: Vec<_> = errors.chain(stale).collect();
    let numbers = failures(result, &names, &outcome, &mut section.failures);
    let of_row = |id: &str, outcome: Outcome| numbers.get(&(id.to_owned(), outcome)).map(|at| at + errors.len());
    section.matrix = Some(matrix(result, &names, &outcome, &of_row));
    section.failures.splice(0..0, errors);
    let mut untested: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in result.rows().filter(|row| row.verdict == RowVerdict::NotTested) {
        let ids = untested.entry(row.reason.as_deref().unwrap_or("no reason was given")).or_default();
        if !ids.contains(&row.id) {
            ids.push(row.id.clone());
        }
    }
    section.untested = untested.into_iter().map(|(reason, ids)| (reason.to_owned(), ids)).collect();
    section.untested.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    section
}

fn outcome(verdict: RowVerdict) -> Outcome {
    match verdict {
        RowVerdict::Fail => Outcome::Failed,
        RowVerdict::Warn => Outcome::Warning,
        RowVerdict::NotTested => Outcome::NotTested,
        RowVerdict::Accepted => Outcome::Accepted,
        RowVerdict::Info => Outcome::Info,
        RowVerdict::Pass => Outcome::Passed,
        RowVerdict::NotApplicable => Outcome::NotApplicable,
    }
}

/// The name of a server among others.
fn name(server: &CheckedServer, all: &[CheckedServer]) -> String {
    let name = server.name.as_deref().unwrap_or(&server.target);
    let is_shared = all.iter().filter(|other| other.name.as_deref().unwrap_or(&other.target) == name).count() > 1;
    if is_shared { format!("{name} ({})", server.transport) } else { name.to_owned() }
}

/// The violated rows, each once with all its places; returns the index of each.
fn failures(
    result: &CheckResult,
    names: &[String],
    outcome: &dyn Fn(RowVerdict) -> Outcome,
    failures: &mut Vec<Failure>,
) -> HashMap<(String, Outcome), usize> {
    let mut found: Vec<((String, Outcome), Failure)> = Vec::new();
    for (server, name) in result.servers.iter().zip(names) {
        for version in &server.versions {
            for row in version.rows.iter().filter(|row| row.verdict <= RowVerdict::Warn) {
                let (key, place) = ((row.id.clone(), outcome(row.verdict)), format!("{name} in {}", version.version));
                match found.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, failure)) => failure.places.push(place),
                    None => {
                        let mut failure = failure(row, name, key.1);
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

/// A violated row.
pub(super) fn failure(row: &CheckedRow, server: &str, outcome: Outcome) -> Failure {
    let open: Vec<_> = row.violations.iter().filter(|violation| violation.accepted.is_none()).collect();
    let texts = open.iter().map(|violation| {
        let subject = violation.subject.as_ref().map(|subject| format!("{subject}: ")).unwrap_or_default();
        format!("{subject}found {}", violation.found)
    });
    let mut messages: Vec<String> = Vec::new();
    for text in texts {
        if !messages.contains(&text) {
            messages.push(text);
        }
    }
    messages.truncate(NAMED);
    let more = row.violation_count.saturating_sub(messages.len());
    messages.extend(
        (more > 0 && !messages.is_empty())
            .then(|| format!("and {more} more violation{}", if more == 1 { "" } else { "s" })),
    );
    messages.extend(row.reason.clone());
    let evidence = open.first().map(|violation| &violation.evidence[..]).unwrap_or_default();
    Failure {
        level: row.level.as_deref().map(ToOwned::to_owned),
        messages,
        rule: Some(Rule { text: row.rule.clone(), help: row.help.clone(), link: row.spec.clone() }),
        wire: evidence.iter().map(|line| TraceLine { server: server.to_owned(), line: line.clone() }).collect(),
        again: row.again.clone().into_iter().collect(),
        ..Failure::new(outcome, row.id.clone())
    }
}

fn matrix(
    result: &CheckResult,
    names: &[String],
    outcome: &dyn Fn(RowVerdict) -> Outcome,
    of_row: &dyn Fn(&str, Outcome) -> Option<usize>,
) -> Matrix {
    let mut columns = Vec::new();
    let mut rows: BTreeMap<&str, (&CheckedRow, HashMap<usize, Outcome>)> = BTreeMap::new();
    for (server, name) in result.servers.iter().zip(names) {
        for version in &server.versions {
            for row in &version.rows {
                let (_, cells) = rows.entry(&row.id).or_insert_with(|| (row, HashMap::new()));
                cells.insert(columns.len(), outcome(row.verdict));
            }
            columns.push((format!("{name}, {}", server.transport), version.version.to_string()));
        }
    }
    let mut groups: Vec<RowGroup> = Vec::new();
    for (id, (row, cells)) in rows {
        let area = id.split('.').next().unwrap_or_default();
        let cell = |column: usize| {
            let outcome = *cells.get(&column)?;
            Some((outcome, of_row(id, outcome)))
        };
        let row = Row { name: id.to_owned(), note: row.rule.clone(), cells: (0..columns.len()).map(cell).collect() };
        match groups.last_mut().filter(|group| group.name == area) {
            Some(group) => group.rows.push(row),
            None => groups.push(RowGroup { name: area.to_owned(), rows: vec![row] }),
        }
    }
    Matrix { columns, groups }
}
