//! The section of profiles.

use std::collections::BTreeMap;

use super::{
    Alert, AlertRule, Case, Failure, Outcome, Place, Remark, Rule, Scan, Section, Suite, Table, TableRow, counted,
};
use crate::{
    Verdict,
    check::{CheckResult, CheckedServer, ConfigPlace},
    groups::grouped,
    profile::{Fit, Measurement, ProfileFinding, ProfileFit, RuleLevel},
};

/// How many messages of a rule are shown.
const NAMED: usize = 8;
/// How many profiles are named in which a server works.
const TITLES: usize = 4;
const HEADS: [&str; 8] = ["fit", "rules", "blocks", "degrades", "advice", "kept", "untried", "nothing known of"];

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
        let rows = server.profiles.iter().map(row).collect();
        section.tables.push(Table { rows, ..Table::new(format!("{name} over {}", server.transport), &HEADS) });
        for profile in &server.profiles {
            section.failures.extend(failures(profile, &result.started_at));
            let unknown = profile.unknown.iter().map(|text| Remark::new(Outcome::NotTested, text));
            section.remarks.extend(unknown);
            section.remarks.extend(profile.untried.iter().map(|untried| {
                let text = format!("{}: {} was not tried: {}", profile.title, untried.rule, untried.reason);
                Remark::detail(Outcome::NotTested, text)
            }));
            section.suites.push(Suite {
                name: format!("{name} over {}: {}", server.transport, profile.title),
                cases: std::iter::once(case(profile))
                    .chain(profile.findings.iter().map(|it| item(profile, it)))
                    .collect(),
            });
        }
    }
    section
        .failures
        .sort_by_key(|failure| (failure.outcome, failure.level.as_deref() != Some(RuleLevel::Blocks.as_str())));
    let fits = [
        (Fit::Works, "works"),
        (Fit::Degraded, "is degraded"),
        (Fit::Blocked, "is blocked"),
        (Fit::Unknown, "is unknown"),
    ];
    let fits = fits.into_iter().filter_map(|(fit, what)| {
        let titles: Vec<_> = profiles().filter(|it| it.fit == fit).map(|it| it.title.as_str()).collect();
        match titles.len() {
            0 => None,
            count if fit == Fit::Works && count > TITLES => Some(format!("{what} in {count} profiles")),
            _ => Some(format!("{what} in {}", titles.join(", "))),
        }
    });
    section.sentence = Some(fits.collect::<Vec<_>>().join(", "));
    section.scan = Some(scan(&servers, &result.started_at));
    Some(section)
}

fn row(profile: &ProfileFit) -> TableRow {
    let counts = RuleLevel::ALL.map(|level| profile.count(level)).into_iter();
    let counts = counts.chain([profile.kept, profile.untried.len()]).map(|count| count.to_string());
    let cells = [profile.fit.to_string(), profile.rules.to_string()].into_iter().chain(counts);
    let cells = cells.chain([profile.silent_on.join(", ")]).collect();
    TableRow { outcome: Some(of_profile(profile)), name: profile.profile.clone(), cells }
}

fn of_profile(profile: &ProfileFit) -> Outcome {
    match profile.fit {
        _ if profile.is_failed() => Outcome::Failed,
        Fit::Works => Outcome::Passed,
        Fit::Unknown => Outcome::NotTested,
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

/// A failure for each rule, with all that break it.
fn failures(profile: &ProfileFit, today: &str) -> Vec<Failure> {
    let findings = profile.findings.iter().map(|finding| (finding, finding));
    let of_rule = |(first, all): (&ProfileFinding, Vec<&ProfileFinding>)| {
        let mut messages: Vec<_> = all.iter().map(|finding| finding.message.clone()).collect();
        messages.dedup();
        if let more @ 1.. = messages.len().saturating_sub(NAMED) {
            messages.truncate(NAMED);
            messages.push(format!("And {more} more."));
        }
        Failure {
            level: Some(first.level.as_str().to_owned()),
            messages,
            places: all.iter().filter_map(|finding| finding.subject.clone()).collect(),
            rule: Some(rule(first, today)),
            ..Failure::new(of_finding(profile, first), format!("{}: {}", profile.title, first.rule))
        }
    };
    grouped(findings, |one, other| one.rule == other.rule).into_iter().map(of_rule).collect()
}

fn rule(finding: &ProfileFinding, today: &str) -> Rule {
    let seen = finding.measured.as_ref().map_or(&finding.seen, |it| &it.date);
    let age = if is_old(seen, today) { ", more than a year ago" } else { "" };
    let help = match &finding.measured {
        Some(Measurement { version, date }) => format!("Measured with {version} on {date}{age}."),
        None => format!("Seen {}{age}.", finding.seen),
    };
    Rule { text: finding.effect.clone(), help: Some(help), link: finding.source.clone() }
}

/// Whether a date is more than a year before another, which a time may follow.
fn is_old(seen: &str, today: &str) -> bool {
    let a_year_before = today.split_once('-').and_then(|(year, day)| {
        let year = year.parse::<u32>().ok()?.checked_sub(1)?;
        Some(format!("{year}-{}", day.get(..5)?))
    });
    a_year_before.is_some_and(|it| seen < it.as_str())
}

/// The findings at the entries of the servers in their configs.
fn scan(servers: &[&CheckedServer], today: &str) -> Scan {
    let mut rules: BTreeMap<String, AlertRule> = BTreeMap::new();
    let mut alerts = Vec::new();
    for (server, place) in servers.iter().filter_map(|server| Some((server, server.place.as_ref()?))) {
        for profile in &server.profiles {
            for finding in profile.findings.iter().filter(|finding| finding.level > RuleLevel::Advice) {
                let id = format!("{}/{}", profile.profile, finding.rule);
                let outcome = of_finding(profile, finding);
                rules.entry(id.clone()).or_insert_with(|| AlertRule {
                    id: id.clone(),
                    outcome,
                    rule: rule(finding, today),
                    area: "profile".to_owned(),
                });
                alerts.push(alert(id, outcome, place, finding));
            }
        }
    }
    Scan {
        category: Some("rehearse/profile/".to_owned()),
        is_complete: true,
        rules: rules.into_values().collect(),
        alerts,
    }
}

fn alert(id: String, outcome: Outcome, place: &ConfigPlace, finding: &ProfileFinding) -> Alert {
    let subject = finding.subject.as_ref().unwrap_or(&place.server);
    Alert {
        fingerprint: Some(format!("{id}/{}/{subject}", place.server)),
        rule: id,
        outcome,
        message: finding.sentence(),
        place: Place { file: place.file.clone(), line: place.line, column: Some(place.column), end: None },
        subject: Some([subject.clone(), format!("{}/{subject}", place.server)]),
        accepted: None,
    }
}

/// The profile as a test.
fn case(profile: &ProfileFit) -> Case {
    let message = if profile.fit == Fit::Works { String::new() } else { profile.fit.to_string() };
    let output = profile.unknown.join("\n");
    Case { name: "fit".to_owned(), outcome: of_profile(profile), message, output, ..Case::default() }
}

fn item(profile: &ProfileFit, finding: &ProfileFinding) -> Case {
    let subject = finding.subject.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
    Case {
        name: format!("{subject}{}", finding.rule),
        outcome: of_finding(profile, finding),
        message: finding.sentence(),
        details: finding.evidence(),
        ..Case::default()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_date_is_old_a_year_and_a_day_later() {
        let is_old = |today| super::is_old("2025-11-30", today);
        assert_eq!(["2026-11-30T08:00:00Z", "2026-12-01T08:00:00Z", "unknown"].map(is_old), [false, true, false]);
    }
}
