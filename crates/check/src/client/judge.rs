//! What the checks say of a client after all acts.

use std::collections::{BTreeMap, BTreeSet};

use rehearse_conformance::{
    Check, CheckOutcome, CheckVerdict, Evidence, Facts, Flow, Judgement, Recorded, Role, Violation, judge_recorded,
};
use rehearse_protocol::{Direction, Frame, Message, Trace, Transport, Version};
use rehearse_report::check::CheckedServer;

use super::act::ACTS;
use crate::{
    report::{checked_version, peer_info},
    selects,
};

/// What a client has done in one act.
#[derive(Debug)]
pub struct ActRun {
    /// The name of the act.
    pub act: String,
    /// The act with which what the client does is compared, if not with the first one.
    pub like: Option<String>,
    /// The URL of the mock over streamable HTTP.
    pub endpoint: Option<String>,
    /// The traces of the mock.
    pub traces: Vec<Trace>,
    /// The exit code of the client, if it has ended by itself.
    pub exit_code: Option<i32>,
}

/// What the checks say of a client in one version over one transport.
struct ClientVersion {
    transport: Transport,
    version: Version,
    /// The traces of all acts in it.
    traces: Vec<Trace>,
    /// The outcome of every check.
    outcomes: Vec<(&'static Check, CheckOutcome)>,
    /// The acts in which a check is violated.
    violated_in: BTreeSet<String>,
    /// For each check that is violated, the first act in which it has its worst verdict.
    worst_in: BTreeMap<&'static str, (CheckVerdict, String)>,
}

/// Judges a client by the traces of all acts: a result for each transport that it used, without its command. `checks` are
/// the selected ones, as [`selects`] takes them; all if empty.
pub fn judge_client(runs: &[ActRun], checks: &[String]) -> Vec<CheckedServer> {
    let mut all: Vec<CheckedServer> = Vec::new();
    for mut run in judge_versions(runs) {
        run.outcomes.retain(|(check, _)| checks.is_empty() || checks.iter().any(|pattern| selects(pattern, &check.id)));
        let traces: Vec<_> = run.traces.iter().collect();
        let mut version = checked_version(&traces, run.version, &run.outcomes);
        for check in &mut version.checks {
            check.act = run.worst_in.remove(check.id.as_str()).map(|(_, act)| act);
        }
        if let Some(known) = all.iter_mut().find(|known| known.transport == run.transport) {
            known.versions.push(version);
            continue;
        }
        let mut checked = CheckedServer::new(String::new(), run.transport);
        (checked.name, checked.server_version) = traces.iter().find_map(|trace| client_info(trace)).unzip();
        checked.versions.push(version);
        all.push(checked);
    }
    all
}

/// The name and the version that a client gives itself.
fn client_info(trace: &Trace) -> Option<(String, String)> {
    trace.frames().filter(|frame| frame.direction == Direction::ClientToServer).find_map(|frame| {
        let message: serde_json::Value = serde_json::from_slice(&frame.bytes).ok()?;
        peer_info(message.get("params")?, "clientInfo")
    })
}

/// Each transport and version that a client used, newest version first.
fn judge_versions(runs: &[ActRun]) -> Vec<ClientVersion> {
    let mut all: BTreeMap<(Transport, std::cmp::Reverse<Version>), ClientVersion> = BTreeMap::new();
    let has_both_eras = runs.iter().any(|run| {
        let sends = |method| run.traces.iter().flat_map(Trace::frames).any(|frame| is_request(frame, method));
        sends("server/discover") && sends("initialize")
    });
    for transport in Transport::EXTERNAL {
        let mut flows: BTreeMap<&str, Option<Flow>> = BTreeMap::new();
        for one in runs {
            let like = one.like.as_deref().unwrap_or(ACTS[0].name);
            let usual = runs.iter().find(|it| it.act == like);
            let flow = flows.entry(like).or_insert_with(|| usual.and_then(|run| flow(run, transport)));
            let facts = Facts {
                role: Role::Client,
                act: Some(one.act.clone()),
                flow: flow.clone(),
                exit_code: one.exit_code,
                has_both_eras,
                endpoint: one.endpoint.clone(),
                fetched: Facts::fetched(&one.traces),
                is_local: true,
                ..Facts::default()
            };
            let judged = judge_recorded(recorded(one, transport), transport, &facts);
            for version in judged.versions {
                let entry = all.entry((transport, std::cmp::Reverse(version.version)));
                let merged = entry.or_insert_with(|| ClientVersion {
                    transport,
                    version: version.version,
                    traces: Vec::new(),
                    outcomes: Vec::new(),
                    violated_in: BTreeSet::new(),
                    worst_in: BTreeMap::new(),
                });
                for (check, outcome) in version.outcomes.iter().filter(|(_, it)| !it.judgement.violations.is_empty()) {
                    let worst = merged.worst_in.entry(&check.id).or_insert((outcome.verdict, one.act.clone()));
                    if outcome.verdict < worst.0 {
                        *worst = (outcome.verdict, one.act.clone());
                    }
                }
                if version.outcomes.iter().any(|(_, outcome)| !outcome.judgement.violations.is_empty()) {
                    merged.violated_in.insert(one.act.clone());
                }
                let offset = merged.traces.len();
                merged.traces.extend(version.traces.into_iter().cloned());
                let outcomes = version.outcomes.into_iter();
                let outcomes = outcomes.map(|(check, outcome)| (check, moved(outcome, offset, &one.act)));
                if merged.outcomes.is_empty() {
                    merged.outcomes = outcomes.collect();
                } else {
                    merged.outcomes.iter_mut().zip(outcomes).for_each(|((_, into), (_, outcome))| merge(into, outcome));
                }
            }
        }
    }
    all.into_values().collect()
}

/// The acts in which a check is violated and the client had to be ended, as it has not in the first one. It may only have
/// been slow there.
pub(crate) fn unconfirmed_acts(runs: &[ActRun]) -> BTreeSet<String> {
    if runs.first().is_none_or(|usual| usual.exit_code.is_none()) {
        return BTreeSet::new();
    }
    let mut acts: BTreeSet<_> = judge_versions(runs).into_iter().flat_map(|version| version.violated_in).collect();
    acts.retain(|act| runs.iter().any(|run| run.act == *act && run.exit_code.is_none()));
    acts
}

fn recorded(run: &ActRun, transport: Transport) -> impl Iterator<Item = Recorded<'_>> {
    let is_over = move |trace: &&Trace| trace.transport() == Some(transport);
    run.traces.iter().filter(is_over).map(|trace| Recorded { trace, asked: None })
}

fn is_request(frame: &Frame, method: &str) -> bool {
    let sent = frame.direction == Direction::ClientToServer;
    sent && Message::parse(&frame.bytes).is_ok_and(|message| message.method() == Some(method))
}

/// What the client does if nothing unusual happens.
fn flow(clean: &ActRun, transport: Transport) -> Option<Flow> {
    let facts = Facts { role: Role::Client, exit_code: clean.exit_code, ..Facts::default() };
    let judged = judge_recorded(recorded(clean, transport), transport, &facts);
    let newest = judged.versions.into_iter().next()?;
    Some(Flow::new(&Evidence::new(&newest.traces, newest.version, transport, facts)))
}

/// An outcome of one act among those of all: its places, and in which act a violation was seen.
fn moved(mut outcome: CheckOutcome, offset: usize, act: &str) -> CheckOutcome {
    for Violation { found, places, .. } in &mut outcome.judgement.violations {
        places.iter_mut().for_each(|place| place.connection += offset);
        found.push_str(&format!(" (act {act})"));
    }
    outcome
}

/// How much a verdict weighs against another one of the same check in another act.
fn weight(verdict: CheckVerdict) -> Option<usize> {
    use CheckVerdict::{Fail, Info, NotApplicable, NotTested, Pass, Warn};
    [NotApplicable, NotTested, Info, Pass, Warn, Fail].iter().position(|it| *it == verdict)
}

fn merge(into: &mut CheckOutcome, outcome: CheckOutcome) {
    let Judgement { exercised, violations, untested } = outcome.judgement;
    into.judgement.exercised += exercised;
    into.judgement.violations.extend(violations);
    into.judgement.untested = into.judgement.untested.take().or(untested);
    if weight(outcome.verdict) > weight(into.verdict) {
        (into.verdict, into.reason) = (outcome.verdict, outcome.reason);
    }
}
