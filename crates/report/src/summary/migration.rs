//! The section of what servers have to do for the newest version.

use super::{Outcome, Remark, Section, counted_word};
use crate::{
    Verdict,
    check::{CheckResult, MigrationKind, MigrationStep},
};

/// `None` if it was not asked for.
pub(super) fn section(result: &CheckResult) -> Option<Section> {
    let servers: Vec<_> =
        result.servers.iter().filter_map(|server| Some((server, server.migration.as_ref()?))).collect();
    let (_, first) = servers.first()?;
    let to = first.to;
    let mut section = Section {
        title: "Migration",
        command: "rehearse check --migrate",
        unit: "steps",
        verdict: Verdict::Passed,
        ..Section::default()
    };
    for (server, migration) in &servers {
        let name = server.name.as_ref().unwrap_or(&server.target);
        let speaks = format!("speaks {}, over {}", migration.from, server.transport);
        section.subjects.push((name.clone(), vec![speaks]));
        let of = if servers.len() > 1 { format!("{name}: ") } else { String::new() };
        let sdk = migration.sdk.iter().map(|sdk| {
            Remark::new(
                Outcome::Info,
                format!("{of}look at the SDK first: {sdk} and later speak {to}, and do most of this"),
            )
        });
        section.remarks.extend(sdk);
        let steps = MigrationKind::ALL.iter().flat_map(|kind| migration.steps.iter().filter(|it| it.kind == *kind));
        section.remarks.extend(steps.map(|step| remark(&of, step)));
    }
    let steps = || servers.iter().flat_map(|(_, migration)| &migration.steps);
    let count = |kind| steps().filter(|step| step.kind == kind).count();
    let (change, remove) = (count(MigrationKind::Change), count(MigrationKind::Remove));
    let to_change = counted_word(change, "thing");
    section.sentence = Some(match steps().next() {
        Some(_) => format!("for {to}: {to_change} to change, {remove} to remove; no check fails for them"),
        None => format!("for {to}: nothing to change, it is spoken"),
    });
    Some(section)
}

fn remark(of: &str, step: &MigrationStep) -> Remark {
    let (outcome, word) = match step.kind {
        MigrationKind::Change => (Outcome::Info, "change"),
        MigrationKind::Remove => (Outcome::NotApplicable, "goes"),
        MigrationKind::Keep => (Outcome::Passed, "stays"),
    };
    let seen = step.seen.as_ref().map(|seen| format!("today it {seen}"));
    let held = (!step.checks.is_empty()).then(|| format!("held by {}", step.checks.join(", ")));
    let details = seen.into_iter().chain(held).collect::<Vec<_>>().join("; ");
    let details = if details.is_empty() { details } else { format!(" ({details})") };
    Remark::new(outcome, format!("{of}{word}: {}{details} {}", step.text, step.spec))
}
