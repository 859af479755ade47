//! The section of profiles.

use super::{Case, Failure, Outcome, Rule, Section, Suite, Table, counted};
use crate::{
    Verdict,
    check::CheckResult,
    profile::{Fit, ProfileFinding, ProfileFit, RuleLevel},
};

/// `None` if no profile was asked for.
pub(super) fn section(result: &CheckResult) -> Option<Section> {
    let servers: Vec<_> = result.servers.iter().filter(|server| !server.profiles.is_empty()).collect();
    let profiles = || servers.iter().flat_map(|server| &server.profiles);
    profiles().next()?;
    let verdict = if profiles().any(ProfileFit::is_failed) { Verdict::Failed } else { Verdict::Passed };
    let mut section = Section {
        title: "Profiles",
        command: "rehearse check --profile",
        unit: "profiles",
        verdict,
        counts: counted(profiles().map(of_profile)),
        ..Section::default()
    };
    for server in &servers {
        let name = server.name.as_deref().unwrap_or(&server.target);
        section.tables.push(Table {
            title: format!("{name} over {}", server.transport),
            error: None,
            heads: vec!["fit", "blocks", "degrades", "advice", "kept", "untried"],
            rows: server.profiles.iter().map(row).collect(),
            histograms: Vec::new(),
            remarks: Vec::new(),
        });
        for profile in &server.profiles {
            section.failures.extend(profile.findings.iter().map(|finding| failure(profile, finding)));
            section.suites.push(Suite {
                name: format!("{name} over {}: {}", server.transport, profile.title),
                cases: std::iter::once(case(profile))
                    .chain(profile.findings.iter().map(|it| item(profile, it)))
                    .collect(),
            });
        }
    }
    section.failures.sort_by_key(|failure| failure.outcome);
    Some(section)
}

fn row(profile: &ProfileFit) -> (String, Vec<String>) {
    let counts = RuleLevel::ALL.map(|level| profile.count(level)).into_iter();
    let counts = counts.chain([profile.kept, profile.untried.len()]).map(|count| count.to_string());
    (profile.profile.clone(), std::iter::once(profile.fit.to_string()).chain(counts).collect())
}

fn of_profile(profile: &ProfileFit) -> Outcome {
    match profile.fit {
        _ if profile.is_failed() => Outcome::Failed,
        Fit::Works => Outcome::Passed,
        _ => Outcome::Warning,
    }
}

fn of_finding(profile: &ProfileFit, finding: &ProfileFinding) -> Outcome {
    match finding.level {
        RuleLevel::Blocks if profile.is_failed() => Outcome::Failed,
        RuleLevel::Blocks | RuleLevel::Degrades => Outcome::Warning,
        RuleLevel::Advice => Outcome::Info,
    }
}

fn failure(profile: &ProfileFit, finding: &ProfileFinding) -> Failure {
    let subject = finding.subject.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
    let help = format!("Seen {}.", finding.seen);
    Failure {
        level: Some(finding.level.as_str().to_owned()),
        messages: vec![finding.message.clone()],
        rule: Some(Rule { text: finding.effect.clone(), help: Some(help), link: finding.source.clone() }),
        ..Failure::new(of_finding(profile, finding), format!("{}: {}{subject}", profile.title, finding.rule))
    }
}

/// The profile as a test.
fn case(profile: &ProfileFit) -> Case {
    let message = if profile.fit == Fit::Works { String::new() } else { profile.fit.to_string() };
    Case { name: "fit".to_owned(), outcome: of_profile(profile), message, ..Case::default() }
}

fn item(profile: &ProfileFit, finding: &ProfileFinding) -> Case {
    let subject = finding.subject.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
    Case {
        name: format!("{subject}{}", finding.rule),
        outcome: of_finding(profile, finding),
        message: finding.sentence(),
        details: format!("seen {} in {}", finding.seen, finding.source),
        ..Case::default()
    }
}
