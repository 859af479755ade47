//! What the checks say of a client after all acts.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rehearse_conformance::{
    Check, CheckOutcome, CheckVerdict, Evidence, Facts, Flow, Judgement, Recorded, Role, Violation, checks_of,
    judge_recorded, migration, sdks,
};
use rehearse_protocol::{Direction, Era, Frame, Message, Trace, Transport, Version};
use rehearse_report::check::CheckedServer;
use serde_json::Value;

use super::act::ACTS;
use crate::{
    report::{checked_version, peer_info},
    selects,
};

/// What a client has done in one act, or in a composite one.
#[derive(Debug)]
pub struct ActRun {
    /// The name of the act, or those of the acts that it is composed of.
    pub acts: Vec<String>,
    /// The act with which what the client does is compared, if not with the first one.
    pub like: Option<String>,
    /// The URL of the mock over streamable HTTP.
    pub endpoint: Option<String>,
    /// The traces of the mock.
    pub traces: Vec<Trace>,
    /// The exit code of the client, if it has ended by itself.
    pub exit_code: Option<i32>,
    /// The end of its standard error, with an introduction.
    pub said: String,
    /// The first command of `--drive` that failed, and why.
    pub undriven: Option<String>,
    /// How long it took.
    pub duration: Duration,
}

/// What the checks say of a client in one version over one transport.
struct ClientVersion {
    transport: Transport,
    version: Version,
    /// The traces of all acts in it.
    traces: Vec<Trace>,
    /// The outcome of every check.
    outcomes: Vec<(&'static Check, CheckOutcome)>,
    /// Each check that is violated in an act, by the number of its run.
    violations: Vec<(usize, &'static str, CheckVerdict)>,
}

/// A check that a client violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violated {
    transport: Transport,
    version: Version,
    check: &'static str,
    verdict: CheckVerdict,
}

impl Violated {
    /// The id of the check.
    pub(super) fn check(&self) -> &'static str {
        self.check
    }

    /// Whether this is the same check, with the same verdict or a worse one.
    pub(super) fn is_as_bad_as(&self, other: &Violated) -> bool {
        self.verdict <= other.verdict && *self == Violated { verdict: self.verdict, ..*other }
    }
}

/// Judges a client by the traces of all acts: a result for each transport that it used, without its command. `checks` are
/// the selected ones, as [`selects`] takes them; all if empty.
pub fn judge_client(runs: &[ActRun], checks: &[String]) -> Vec<CheckedServer> {
    let mut all: Vec<CheckedServer> = Vec::new();
    for mut run in judge_versions(runs, |_| true) {
        run.outcomes.retain(|(check, _)| checks.is_empty() || checks.iter().any(|pattern| selects(pattern, &check.id)));
        let traces: Vec<_> = run.traces.iter().collect();
        let mut version = checked_version(&traces, run.version, &run.outcomes);
        for check in &mut version.checks {
            let worst = run.violations.iter().filter(|(_, id, _)| *id == check.id);
            let worst = worst.min_by_key(|(at, _, verdict)| (*verdict, runs[*at].acts.len(), *at));
            check.act = worst.and_then(|(at, ..)| runs[*at].acts.first().cloned());
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

/// Notes of acts in which the client ended with an error that it does not have in the act `clean`, before the rule that they
/// are about was tested.
pub fn note_crashes(servers: &mut [CheckedServer], runs: &[ActRun]) {
    let usual = runs.first().and_then(|run| run.exit_code);
    for run in runs.iter().filter(|run| run.exit_code.is_some_and(|code| code != 0) && usual == Some(0)) {
        let [act] = &run.acts[..] else { continue };
        let name = format!("`{act}`");
        let own: Vec<_> = checks_of(Role::Client).filter(|check| check.looks_at.contains(&name)).collect();
        for server in &mut *servers {
            let mut judged = server.versions.iter().flat_map(|version| &version.checks);
            let is_tested = judged.any(|it| it.is_tested() && own.iter().any(|check| check.id == it.id));
            let code = run.exit_code.unwrap_or_default();
            server.untried.extend((!own.is_empty() && !is_tested).then(|| {
                format!("what the act {act} is about was not tested: the client ended with exit code {code}")
            }));
        }
    }
}

/// Says of each transport what the client has to do for the newest version, from what it does in the newest one that it
/// speaks.
pub fn note_migration(servers: &mut [CheckedServer], runs: &[ActRun]) {
    for server in servers {
        let transport = server.transport;
        let traces: Vec<_> = runs.iter().flat_map(|run| recorded(run, transport)).map(|it| it.trace).collect();
        let newest = traces.iter().flat_map(|trace| Evidence::versions(trace)).max();
        let facts = || Facts { role: Role::Client, ..Facts::default() };
        server.migration = newest.map(|version| migration(&Evidence::new(&traces, version, transport, facts())));
    }
}

/// The name and the version that a client gives itself.
fn client_info(trace: &Trace) -> Option<(String, String)> {
    trace.frames().filter(|frame| frame.direction == Direction::ClientToServer).find_map(|frame| {
        let message: Value = serde_json::from_slice(&frame.bytes).ok()?;
        peer_info(message.get("params")?, "clientInfo")
    })
}

/// Each transport and version that a client used in the wanted runs, newest version first.
fn judge_versions(runs: &[ActRun], is_wanted: impl Fn(&ActRun) -> bool) -> Vec<ClientVersion> {
    let mut all: BTreeMap<(Transport, std::cmp::Reverse<Version>), ClientVersion> = BTreeMap::new();
    let has_both_eras = runs.iter().any(|run| {
        let sends = |method| run.traces.iter().flat_map(Trace::frames).any(|frame| is_request(frame, method));
        sends("server/discover") && sends("initialize")
    });
    let sdks = sdks(runs.iter().flat_map(|run| &run.traces), Direction::ClientToServer);
    for transport in Transport::EXTERNAL {
        let mut flows: BTreeMap<&str, Option<Flow>> = BTreeMap::new();
        // What an act shows alone need not be said once more of a composite act.
        let mut shown: BTreeSet<(Version, &str, Option<String>, String)> = BTreeSet::new();
        let (alone, composed): (Vec<_>, Vec<_>) =
            runs.iter().enumerate().filter(|(_, run)| is_wanted(run)).partition(|(_, run)| run.acts.len() == 1);
        for (at, one) in alone.into_iter().chain(composed) {
            let like = one.like.as_deref().unwrap_or(ACTS[0].name);
            let usual = runs.iter().find(|it| it.acts == [like]);
            let flow = flows.entry(like).or_insert_with(|| usual.and_then(|run| flow(run, transport)));
            let facts = Facts {
                role: Role::Client,
                acts: one.acts.clone(),
                flow: flow.clone(),
                exit_code: one.exit_code,
                has_both_eras,
                endpoint: one.endpoint.clone(),
                fetched: Facts::fetched(&one.traces),
                is_local: true,
                sdks: sdks.clone(),
                ..Facts::default()
            };
            let judged = judge_recorded(recorded(one, transport), transport, &facts);
            for mut version in judged.versions {
                let entry = all.entry((transport, std::cmp::Reverse(version.version)));
                let merged = entry.or_insert_with(|| ClientVersion {
                    transport,
                    version: version.version,
                    traces: Vec::new(),
                    outcomes: Vec::new(),
                    violations: Vec::new(),
                });
                let violated = version.outcomes.iter().filter(|(_, it)| !it.judgement.violations.is_empty());
                merged.violations.extend(violated.map(|(check, it)| (at, check.id.as_str(), it.verdict)));
                for (check, outcome) in &mut version.outcomes {
                    let key =
                        |it: &Violation| (merged.version, check.id.as_str(), it.subject.clone(), it.found.clone());
                    let violations = &mut outcome.judgement.violations;
                    match one.acts.len() {
                        1 => shown.extend(violations.iter().map(key)),
                        _ => violations.retain(|it| !shown.contains(&key(it))),
                    }
                }
                let offset = merged.traces.len();
                merged.traces.extend(version.traces.into_iter().cloned());
                let outcomes = version.outcomes.into_iter();
                let outcomes = outcomes.map(|(check, outcome)| (check, moved(outcome, offset, &one.acts)));
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
    let versions = judge_versions(runs, |run| run.exit_code.is_none()).into_iter();
    versions.flat_map(|version| version.violations).flat_map(|(at, ..)| runs[at].acts.clone()).collect()
}

/// What the client violates in a run, by the acts of the run.
pub(super) type Violations = BTreeMap<Vec<String>, BTreeSet<Violated>>;

/// Adds the failures and warnings of each run that is not there yet.
pub(super) fn add_violated(all: &mut Violations, runs: &[ActRun]) {
    let new: BTreeSet<_> = runs.iter().map(|run| &run.acts).filter(|acts| !all.contains_key(*acts)).cloned().collect();
    for ClientVersion { transport, version, violations, .. } in judge_versions(runs, |run| new.contains(&run.acts)) {
        for (at, check, verdict) in violations.into_iter().filter(|(.., verdict)| *verdict <= CheckVerdict::Warn) {
            let of_run = all.entry(runs[at].acts.clone()).or_default();
            of_run.insert(Violated { transport, version, check, verdict });
        }
    }
    for acts in new {
        all.entry(acts).or_default();
    }
}

/// The eras of the requests that a client sends.
pub(super) fn spoken_eras(run: &ActRun) -> BTreeSet<Era> {
    let frames = || run.traces.iter().flat_map(Trace::frames);
    let versions = run.traces.iter().flat_map(Evidence::versions);
    let legacy = frames().any(|frame| is_request(frame, "initialize")).then_some(Era::Legacy);
    let modern = frames().any(|frame| is_request(frame, "server/discover")).then_some(Era::Modern);
    versions.map(Version::era).chain(legacy).chain(modern).collect()
}

/// Whether the client sends all requests that it sends in the act `clean`, and ends if it does there.
pub(super) fn is_complete(run: &ActRun, clean: &ActRun) -> bool {
    Transport::EXTERNAL.into_iter().all(|transport| {
        let [usual, done] = [clean, run].map(|run| done(run, transport));
        usual.lacks(&done).is_none() && usual.hangs_in(&done).is_none()
    })
}

/// What a client has done over a transport in all versions.
fn done(run: &ActRun, transport: Transport) -> Flow {
    let traces: Vec<_> = recorded(run, transport).map(|it| it.trace).collect();
    let versions: BTreeSet<_> = traces.iter().flat_map(|trace| Evidence::versions(trace)).collect();
    let flows = versions.into_iter().map(|version| {
        let facts = Facts { role: Role::Client, ..Facts::default() };
        Flow::new(&Evidence::new(&traces, version, transport, facts))
    });
    Flow { methods: flows.flat_map(|flow| flow.methods).collect(), exit_code: run.exit_code }
}

/// The tools that a client has called.
pub(super) fn called_tools(run: &ActRun) -> BTreeSet<String> {
    let sent = run.traces.iter().flat_map(Trace::frames).filter(|frame| is_request(frame, "tools/call"));
    let name = |frame: &Frame| {
        Some(serde_json::from_slice::<Value>(&frame.bytes).ok()?["params"]["name"].as_str()?.to_owned())
    };
    sent.filter_map(name).collect()
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
fn moved(mut outcome: CheckOutcome, offset: usize, acts: &[String]) -> CheckOutcome {
    let word = if acts.len() == 1 { "act" } else { "acts" };
    for Violation { found, places, .. } in &mut outcome.judgement.violations {
        places.iter_mut().for_each(|place| place.connection += offset);
        found.push_str(&format!(" ({word} {})", acts.join(", ")));
    }
    outcome
}

/// How much a verdict weighs against another one of the same check in another act.
fn weight(verdict: CheckVerdict) -> Option<usize> {
    use CheckVerdict::{Fail, Info, NotApplicable, NotTested, Pass, Warn};
    [NotApplicable, NotTested, Info, Pass, Warn, Fail].iter().position(|it| *it == verdict)
}

fn merge(into: &mut CheckOutcome, outcome: CheckOutcome) {
    let Judgement { exercised, settled, violations, untested } = outcome.judgement;
    into.judgement.exercised += exercised;
    into.judgement.settled += settled;
    into.judgement.violations.extend(violations);
    into.judgement.untested = into.judgement.untested.take().or(untested);
    if weight(outcome.verdict) > weight(into.verdict) {
        (into.verdict, into.reason) = (outcome.verdict, outcome.reason);
    }
}

#[cfg(test)]
mod tests {
    use rehearse_protocol::EventKind;

    use super::*;

    fn run(acts: &[&str], code: i32, traces: Vec<Trace>) -> ActRun {
        ActRun {
            acts: acts.iter().map(|act| (*act).to_owned()).collect(),
            like: None,
            endpoint: None,
            traces,
            exit_code: Some(code),
            said: String::new(),
            undriven: None,
            duration: Duration::ZERO,
        }
    }

    #[test]
    fn what_an_act_shows_alone_is_not_said_again_of_a_composite_act() {
        let sent = |message: &'static str| {
            let mut trace = Trace::default();
            trace.push(Duration::ZERO, EventKind::Opened(Transport::Stdio));
            let params = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
            for message in [params, message] {
                trace.push_frame(Duration::ZERO, Direction::ClientToServer, message.into());
            }
            vec![trace]
        };
        let found = |of_composite| {
            let alone = run(&["clean"], 0, sent(r#"{"id":2,"method":"ping"}"#));
            let runs = [run(&["pages", "json"], 0, sent(of_composite)), alone];
            let only = ["client-rpc.envelope.version-field".to_owned()];
            let check = judge_client(&runs, &only).remove(0).versions.remove(0).checks.remove(0);
            check.violations.into_iter().map(|it| it.found).collect::<Vec<_>>()
        };
        assert_eq!(found(r#"{"id":2,"method":"ping"}"#), ["no `jsonrpc` (act clean)"]);
        let other = found(r#"{"jsonrpc":2,"id":2,"method":"ping"}"#);
        assert_eq!(other.len(), 2, "{other:?}");
    }

    #[test]
    fn a_crash_in_an_act_is_no_test_of_what_the_act_is_about() {
        let noted = |usual, code, verdict| {
            let check = checks_of(Role::Client).find(|it| it.id == "client-list.page.loop-guard").expect("the check");
            let outcome = CheckOutcome::without(verdict, String::new(), None);
            let version = checked_version(&[], Version::V2025_11_25, &[(check, outcome)]);
            let mut server = CheckedServer::new(String::new(), Transport::Http);
            server.versions = vec![version];
            let mut servers = vec![server];
            note_crashes(&mut servers, &[run(&["clean"], usual, Vec::new()), run(&["same-cursor"], code, Vec::new())]);
            servers.remove(0).untried
        };
        let why = "what the act same-cursor is about was not tested: the client ended with exit code 1";
        assert_eq!(noted(0, 1, CheckVerdict::NotTested), [why]);
        assert_eq!(noted(0, 1, CheckVerdict::Pass), [""; 0], "it was tested before");
        assert_eq!(noted(0, 0, CheckVerdict::NotTested), [""; 0]);
        assert_eq!(noted(1, 1, CheckVerdict::NotTested), [""; 0], "it always ends like this");
    }
}
