//! The section of `rehearse fuzz`.

use std::collections::BTreeMap;

use super::{Alert, AlertRule, Case, Failure, Outcome, Place, Rule, Scan, Section, Suite, counted, readable};
use crate::{
    check::ConfigPlace,
    fuzz::{FuzzBug, FuzzResult, FuzzedTarget},
};

pub(super) fn section(result: &FuzzResult) -> Section {
    let mut section = Section {
        title: "Fuzzing",
        command: "rehearse fuzz",
        unit: "targets",
        duration: result.duration,
        verdict: result.verdict,
        counts: counted(result.targets.iter().map(|it| of_target(result, it))),
        suites: vec![Suite {
            name: "rehearse fuzz".to_owned(),
            cases: result.targets.iter().map(|it| case(result, it)).collect(),
        }],
        scan: result.place.as_ref().map(|place| scan(result, place)),
        ..Section::default()
    };
    section.facts = vec![
        ("server", result.server.clone().unwrap_or_else(|| result.target.clone())),
        ("inputs", result.cases.to_string()),
        ("duration", readable(result.duration)),
        ("seed", result.seed.to_string()),
        ("rehearse", result.rehearse.clone()),
    ];
    section.failures = result.bugs.iter().map(|bug| failure(result, bug)).collect();
    section.failures.sort_by_key(|failure| failure.outcome);
    section.remarks.extend(result.error.clone());
    section
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
    Failure {
        level: Some(bug.oracle.as_str().to_owned()),
        messages: vec![bug.message.clone(), format!("It happens {}.", bug.input())],
        ..Failure::new(of_bug(result, bug), bug.target.to_string())
    }
}
