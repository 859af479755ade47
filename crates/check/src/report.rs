//! What a report says of judged traffic.

use rehearse_client::Target;
use rehearse_conformance::{Check, CheckOutcome, CheckVerdict, EventRef, Violation};
use rehearse_protocol::{Trace, Version};
use rehearse_report::{
    WireLine,
    check::{CheckedVersion, FoundViolation, JudgedCheck},
    marks,
};
use serde_json::Value;

/// How many violations of one check keep their frames.
const WITH_EVIDENCE: usize = 20;

/// The command or URL of a server, as reports show it.
pub fn target_text(target: &Target) -> String {
    match target {
        Target::Stdio(spec) => [&spec.program].into_iter().chain(&spec.args).cloned().collect::<Vec<_>>().join(" "),
        target => target.endpoint().map_or_else(|| "memory".to_owned(), |at| at.url.clone()),
    }
}

/// The name and the version that a peer gives itself: in this member, or in `_meta`.
pub(crate) fn peer_info(value: &Value, member: &str) -> Option<(String, String)> {
    let modern = || value.get("_meta")?.get(format!("io.modelcontextprotocol/{member}"));
    let info = value.get(member).or_else(modern)?;
    let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
    Some((text("name"), text("version")))
}

/// The verdicts in one version.
pub(crate) fn checked_version(
    traces: &[&Trace],
    version: Version,
    outcomes: &[(&'static Check, CheckOutcome)],
) -> CheckedVersion {
    let checks = outcomes.iter().map(|(check, outcome)| judged_check(traces, version, check, outcome)).collect();
    CheckedVersion { version, checks }
}

/// The verdict on a check. The places of its evidence are in these traces.
pub(crate) fn judged_check(traces: &[&Trace], version: Version, check: &Check, outcome: &CheckOutcome) -> JudgedCheck {
    let violations = &outcome.judgement.violations;
    let level = outcome.level;
    let worst = violations.iter().filter_map(|it| it.level.or(level)).min_by_key(|it| it.violated());
    // A second run may have made a warning of a failure; what only follows from another violation is as bad as it is.
    let least = if outcome.cause.is_some() { CheckVerdict::Fail } else { outcome.verdict };
    let found = violations.iter().enumerate().map(|(number, violation)| FoundViolation {
        verdict: violation.level.or(level).map_or(CheckVerdict::Info, |it| it.violated().max(least)),
        subject: violation.subject.clone(),
        found: violation.found.clone(),
        accepted: None,
        sdk: violation.sdk.map(Into::into),
        evidence: if number < WITH_EVIDENCE { evidence(traces, violation) } else { Vec::new() },
    });
    JudgedCheck {
        id: check.id.clone(),
        level: worst.or(level).map(|level| level.as_str().into()),
        verdict: outcome.verdict,
        reason: outcome.reason.clone(),
        rule: check.rule.clone(),
        help: check.help.clone(),
        spec: check.link(version),
        official: check.official.clone(),
        cause: outcome.cause.map(Into::into),
        capability: check.capability.clone().map(Into::into),
        is_left_out: outcome.is_left_out,
        exercised: outcome.judgement.exercised,
        act: None,
        again: None,
        violation_count: violations.len(),
        violations: found.collect(),
    }
}

/// The frames and HTTP heads that show a violation.
fn evidence(traces: &[&Trace], violation: &Violation) -> Vec<WireLine> {
    let marks = marks(violation.subject.as_deref(), &violation.found);
    violation.places.iter().filter_map(|place| line(traces, *place, &marks)).collect()
}

fn line(traces: &[&Trace], place: EventRef, marks: &[String]) -> Option<WireLine> {
    let (_, event) = traces.get(place.connection)?.since(place.event).next()?;
    WireLine::from_event(event, marks)
}

#[cfg(test)]
mod tests {
    use rehearse_conformance::{Judgement, Level, checks};

    use super::*;

    #[test]
    fn what_follows_from_another_violation_is_as_bad_as_it_is() {
        let check = checks().iter().find(|check| check.id == "rpc.error.message-string").expect("the check");
        let mut judgement = Judgement::default();
        judgement.check_at(false, None, Vec::new(), || "x".to_owned());
        let level = Some(Level::Must);
        let outcome = |verdict, cause| CheckOutcome {
            verdict,
            level,
            reason: None,
            judgement: judgement.clone(),
            cause,
            is_left_out: false,
        };
        let found = |outcome| judged_check(&[], Version::V2025_11_25, check, &outcome).violations[0].verdict;
        assert_eq!(found(outcome(CheckVerdict::NotTested, Some("rpc.error.code-integer"))), CheckVerdict::Fail);
        assert_eq!(found(outcome(CheckVerdict::Warn, None)), CheckVerdict::Warn, "a second run has not shown it");
    }

    #[test]
    fn the_level_is_that_of_the_worst_violation() {
        let check = checks().iter().find(|check| check.id == "rpc.error.message-string").expect("the check");
        let mut outcome = CheckOutcome::without(CheckVerdict::Warn, String::new(), Some(Level::Must));
        let shown = |outcome: &CheckOutcome| judged_check(&[], Version::V2025_11_25, check, outcome).level;
        assert_eq!(shown(&outcome).as_deref(), Some("MUST"));
        for level in [Level::Info, Level::Derived] {
            outcome.judgement.check_at(false, None, Vec::new(), || "x");
            outcome.judgement.at_level(level);
        }
        assert_eq!(shown(&outcome).as_deref(), Some("derived"));
    }
}
