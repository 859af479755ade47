//! The section of `rehearse fuzz`.

use std::collections::BTreeMap;

use rehearse_document::text::shortened;
use rehearse_system::program::quoted;

use super::{
    Alert, AlertRule, Case, Failure, Outcome, Place, Rule, Scan, Section, Suite, Table, TableRow, counted,
    counted_word, readable,
};
use crate::{
    check::ConfigPlace,
    fuzz::{FuzzBug, FuzzResult, FuzzedTarget, TargetKind},
    groups::grouped,
};

/// How much of an input and of the name of a target is shown.
const INPUT: usize = 200;
const NAME: usize = 48;
const HEADS: [&str; 5] = ["inputs", "accepted", "refused", "failed", "bugs"];

pub(super) fn section(result: &FuzzResult) -> Section {
    let mut section = Section {
        title: "Fuzzing",
        command: "rehearse fuzz",
        unit: "targets",
        duration: result.duration,
        seed: Some(result.seed),
        verdict: result.verdict,
        subjects: vec![(
            result.server.clone().unwrap_or_else(|| "server".to_owned()),
            vec![result.target.clone(), result.protocol.clone()],
        )],
        counts: counted(result.targets.iter().map(|it| of_target(result, it))),
        suites: vec![Suite {
            name: "rehearse fuzz".to_owned(),
            cases: result.targets.iter().map(|it| case(result, it)).collect(),
        }],
        scan: result.place.as_ref().map(|place| scan(result, place)),
        ..Section::default()
    };
    section.facts = vec![
        ("inputs", result.cases.to_string()),
        ("duration", readable(result.duration)),
        ("seed", result.seed.to_string()),
        ("rehearse", result.rehearse.clone()),
    ];
    section.failures = result.bugs.iter().map(|bug| failure(result, bug)).collect();
    section.failures.extend(result.error.clone().map(|error| Failure {
        messages: vec![error],
        ..Failure::new(Outcome::Error, "the run ended before its time".to_owned())
    }));
    section.failures.sort_by_key(|failure| failure.outcome);
    // Why the others had no input stands below.
    let rows = result.targets.iter().filter(|target| target.cases > 0).map(|target| row(result, target)).collect();
    section.tables.push(Table { rows, ..Table::new("Inputs of each target".to_owned(), &HEADS) });
    let reasons = result.targets.iter().filter_map(|it| Some((it.reason.clone()?, it)));
    let reason = |(reason, it): (String, &FuzzedTarget)| match it.accepted {
        0 => (reason, it.target.to_string()),
        _ => (format!("not tried to the end: {reason}"), it.target.to_string()),
    };
    section.untested = grouped(reasons.map(reason), |one, other| one == other);
    let seconds = result.duration.as_secs_f64();
    let rate = if seconds > 0.0 { result.cases as f64 / seconds } else { 0.0 };
    let bugs = if result.bugs.is_empty() { "no bug".to_owned() } else { counted_word(result.bugs.len(), "bug") };
    section.sentence = Some(format!("{bugs}, {} inputs, {rate:.0} a second", result.cases));
    section
}

fn row(result: &FuzzResult, target: &FuzzedTarget) -> TableRow {
    let bugs = result.bugs.iter().filter(|bug| bug.target == target.target).count();
    TableRow {
        outcome: Some(of_target(result, target)),
        name: shortened(&target.target.to_string(), NAME),
        cells: [target.cases, target.accepted, target.refused, target.failed, bugs].map(|it| it.to_string()).into(),
    }
}

/// The bugs at the entry of the server in its config file, as an input has no line.
fn scan(result: &FuzzResult, place: &ConfigPlace) -> Scan {
    let mut rules: BTreeMap<String, AlertRule> = BTreeMap::new();
    let alerts = result.bugs.iter().map(|bug| {
        let id = format!("fuzz-{}", bug.oracle);
        rules.entry(id.clone()).or_insert_with(|| AlertRule {
            id: id.clone(),
            outcome: of_bug(result, bug),
            rule: Rule { text: bug.oracle.phrase().to_owned(), help: None, link: String::new() },
            area: "fuzz".to_owned(),
        });
        let target = bug.target.to_string();
        Alert {
            fingerprint: Some(format!("{id}/{}/{target}/{}", place.server, bug.arguments)),
            rule: id,
            outcome: of_bug(result, bug),
            message: sentence(bug),
            place: Place { file: place.file.clone(), line: place.line, column: Some(place.column), end: None },
            subject: Some([target.clone(), format!("{}/{target}", place.server)]),
            accepted: None,
        }
    });
    let alerts = alerts.collect();
    Scan {
        category: Some(format!("rehearse/fuzz/{}/", place.server)),
        is_complete: result.error.is_none(),
        rules: rules.into_values().collect(),
        alerts,
    }
}

fn of_bug(result: &FuzzResult, bug: &FuzzBug) -> Outcome {
    if result.fails(bug) { Outcome::Failed } else { Outcome::Warning }
}

fn of_target(result: &FuzzResult, target: &FuzzedTarget) -> Outcome {
    let bugs = result.bugs.iter().filter(|bug| bug.target == target.target);
    let usual = if target.reason.is_some() { Outcome::NotTested } else { Outcome::Passed };
    bugs.map(|bug| of_bug(result, bug)).min().unwrap_or(usual)
}

fn case(result: &FuzzResult, target: &FuzzedTarget) -> Case {
    let bugs: Vec<_> = result.bugs.iter().filter(|bug| bug.target == target.target).map(sentence).collect();
    Case {
        name: target.target.to_string(),
        outcome: of_target(result, target),
        message: bugs.first().cloned().or_else(|| target.reason.clone()).unwrap_or_default(),
        details: bugs.join("\n"),
        ..Case::default()
    }
}

fn sentence(bug: &FuzzBug) -> String {
    format!("{} {} It happens {}.", bug.oracle, bug.message, bug.input())
}

fn failure(result: &FuzzResult, bug: &FuzzBug) -> Failure {
    let validity = match (bug.target.kind, bug.is_valid) {
        (TargetKind::Tool, Some(true)) => Some("The schema accepts this input."),
        (TargetKind::Tool, Some(false)) => Some("The schema refuses this input."),
        (TargetKind::Tool, None) => Some("The schema cannot be read."),
        (_, Some(false)) => Some("This input is not what the server declares."),
        (_, _) => None,
    };
    let input = format!("It happens {}.", shortened(&bug.input(), INPUT));
    let messages = [bug.message.clone(), input].into_iter().chain(validity.map(ToOwned::to_owned)).collect();
    let tools =
        [(bug.target.kind == TargetKind::Tool).then_some(&bug.target.name), bug.before.as_ref().map(|it| &it.name)];
    let tools = tools.into_iter().flatten().map(|name| format!(" --tool {}", quoted(name)));
    let again = (!result.again.is_empty()).then(|| format!("{}{}", result.again, tools.collect::<String>()));
    let again = again.into_iter().collect();
    Failure { messages, again, ..Failure::new(of_bug(result, bug), format!("{} {}", bug.oracle, bug.target)) }
}
