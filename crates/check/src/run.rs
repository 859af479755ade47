//! A whole run against one server.

use std::cmp::Reverse;

use futures_util::future::join_all;
use parking_lot::Mutex;
use rehearse_client::{ConnectError, ServerParams};
use rehearse_conformance::{
    Check, CheckOutcome, CheckVerdict, Confirmation, Evidence, Facts, Judgement, Material, MoreTools, attribute, cases,
    judge_selected, migration, sdks,
};
use rehearse_protocol::{Direction, Era, EventKind, Trace, Transport, Version};
use rehearse_report::check::{CheckedServer, Migration, UnansweredVersion, UncalledTool};
use tokio::time::Instant;

use crate::{
    CheckEvent, CheckOptions,
    connection::KEPT_BYTES,
    detection::{Attempt, Negotiated, Refusal, attempt, candidates, has_message, no_version, unanswered},
    effects, lists,
    options::{Budget, MOST_KEPT},
    prober::{Extent, Prober},
    probes,
    report::{checked_version, peer_info, target_text},
    server,
    survey::{Survey, survey},
};

/// A run against one server over one transport.
#[derive(Debug)]
pub struct CheckRun {
    /// Its result.
    pub checked: CheckedServer,
    /// The traces of all connections in each version of the result.
    pub traces: Vec<VersionTraces>,
}

/// All connections in one version.
#[derive(Debug)]
pub struct VersionTraces {
    /// The version.
    pub version: Version,
    /// The trace of each.
    pub traces: Vec<Trace>,
}

const TIME_OVER: &str = "the time of --budget was over";

/// One version.
struct VersionRun {
    version: Version,
    traces: Vec<Trace>,
    /// The outcome of every selected check.
    outcomes: Vec<(&'static Check, CheckOutcome)>,
    /// The tools that may be called and were not.
    uncalled: Vec<UncalledTool>,
    migration: Option<Migration>,
}

/// Checks a server in all versions that it speaks. The result of one that cannot be reached, or speaks no version, has an
/// error.
///
/// ```
/// use rehearse_check::{CheckOptions, check};
/// use rehearse_client::{Endpoint, ServerParams, Target};
/// use rehearse_mock::{MockServer, Tool};
/// use rehearse_protocol::Transport;
/// use rehearse_report::check::CheckVerdict;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder().verify_on_drop(false).tool(Tool::new("a b").reply("x")).start().await?;
/// let target = Target::Ws(Endpoint { url: server.url(Transport::Ws).ok_or("it listens")?, headers: Vec::new() });
/// let options = CheckOptions { checks: vec!["tools.list".to_owned()], ..CheckOptions::default() };
/// let checked = check(&ServerParams::new("server", target), &options).await.checked;
/// let checks = checked.versions.iter().flat_map(|version| &version.checks);
/// let violated: Vec<_> = checks.filter(|check| check.verdict <= CheckVerdict::Warn).map(|check| &check.id).collect();
/// assert!(violated.contains(&&"tools.list.name-charset".to_owned()), "{violated:?}");
/// # Ok(())
/// # }
/// ```
///
/// When the `shutdown` of the server is cancelled, the run ends, and what was recorded by then is judged.
pub async fn check(params: &ServerParams, options: &CheckOptions) -> CheckRun {
    let (params, options) = &server::prepared(params, options);
    let started = Instant::now();
    let budget = &Budget::new(started, options.budget);
    let mut checked = CheckedServer::new(target_text(&params.target), params.target.transport());
    let mut failure = None;
    let mut refusals = Vec::new();
    let (mut unopened, mut unopened_versions) = (None, Vec::new());
    let all = candidates(&params.target, options);
    let attempts = all.iter().map(|version| async {
        let begun = Instant::now();
        (*version, attempt(params, *version, options, budget).await, begun.elapsed())
    });
    let Some(attempts) = budget.limit(&params.shutdown, join_all(attempts)).await else {
        let why = if params.shutdown.is_cancelled() { "the run was interrupted" } else { TIME_OVER };
        checked.error = Some(format!("{why} before the server had answered in each version"));
        return CheckRun { checked, traces: Vec::new() };
    };
    let mut spoken = Vec::new();
    for (version, attempted, started_in) in attempts {
        match attempted {
            Attempt::Negotiated(negotiated) => {
                if spoken.is_empty() {
                    checked.started_in = started_in;
                }
                let info = peer_info(&negotiated.handshake, "serverInfo");
                if let (None, Some((name, version))) = (&checked.name, info) {
                    (checked.name, checked.server_version) = (Some(name), Some(version));
                }
                spoken.push(negotiated);
            }
            Attempt::Untried => {
                unopened_versions.push((version, "the server has said nothing in other versions".to_owned()))
            }
            Attempt::Refused(refusal) => refusals.push(refusal),
            Attempt::Failed(error, trace) => {
                unopened_versions.push((version, error.to_string()));
                let judged = judge_opening(params, version, trace, options);
                unopened = unopened.or_else(|| Some((judged?, error.to_string())));
                failure = Some(error);
            }
        }
    }
    let all_spoken: Vec<_> = spoken.iter().map(|it| it.version).collect();
    let (plan, done) = (&Plan::new(&all_spoken, options), Mutex::new(Vec::new()));
    let checking = spoken.into_iter().map(|negotiated| async {
        let version = negotiated.version;
        options.tell(CheckEvent::Probing(version));
        let probed = Box::pin(probe(params, *negotiated, plan, options, budget)).await;
        if probed.doubtful().next().is_none() {
            options.tell(CheckEvent::Judged(version));
        }
        done.lock().push(probed);
    });
    let mut is_done = budget.limit(&params.shutdown, join_all(checking)).await.is_some();
    let mut versions = done.into_inner();
    if !is_done {
        let is_done = |version: &Version| versions.iter().any(|run| run.version == *version);
        let open: Vec<_> = all_spoken.iter().copied().filter(|version| !is_done(version)).collect();
        versions.extend(open.into_iter().map(|version| judge_open(params, version, options, budget)));
    }
    versions.sort_by_key(|run| Reverse(run.version));
    attribute_to_known(&mut versions, params.target.transport());
    if is_done {
        let mut doubtful: Vec<_> = versions.iter_mut().filter(|run| run.doubtful().next().is_some()).collect();
        let parallel =
            doubtful.iter_mut().map(|run| confirm(run, Confirmation::Parallel, params, plan, options, budget));
        is_done = !Box::pin(join_all(parallel)).await.contains(&false);
        for run in doubtful {
            is_done = is_done && Box::pin(confirm(run, Confirmation::Alone, params, plan, options, budget)).await;
            options.tell(CheckEvent::Judged(run.version));
        }
    }
    plan.explain(&mut versions);
    if versions.is_empty() && refusals.iter().any(Refusal::is_unauthorized) {
        let version = all.iter().find(|version| **version == Version::LATEST_LEGACY).or(all.first());
        versions.extend(join_all(version.map(|version| locked(params, *version, options, budget))).await);
        let others = versions.iter().flat_map(|run| &run.outcomes);
        let untested = others.filter(|(check, it)| check.area() != "auth" && it.verdict == CheckVerdict::NotTested);
        checked.untried.extend(untested.take(1).filter_map(|(_, outcome)| outcome.reason.clone()));
    }
    if versions.iter().any(|it| it.version.era() == Era::Legacy) {
        unopened_versions.extend(unanswered(&refusals));
    }
    if !versions.is_empty() {
        // A version that the user has named is not checked either if the server refuses it.
        let is_known = |version: Version| {
            versions.iter().any(|run| run.version == version) || unopened_versions.iter().any(|it| it.0 == version)
        };
        let is_named = |version| options.versions.contains(&version) && options.versions.len() < Version::ALL.len();
        let refused = refusals.iter().filter(|it| is_named(it.version) && !is_known(it.version));
        let refused: Vec<_> = refused.map(|it| (it.version, no_version(std::slice::from_ref(it), None))).collect();
        let all = unopened_versions.into_iter().chain(refused);
        checked.unanswered = all.map(|(version, reason)| UnansweredVersion { version, reason }).collect();
    }
    if versions.is_empty() {
        let refused = || {
            let (judged, why) =
                (|it: &Refusal| judge_opening(params, it.version, it.trace.clone(), options), no_version);
            // Every server of the legacy era knows `initialize`; it may say what it wants to what the modern one asks.
            let (legacy, modern): (Vec<_>, Vec<_>) = refusals.iter().partition(|it| it.version.era() == Era::Legacy);
            let mut all = legacy.into_iter().chain(modern);
            all.find_map(|refusal| Some((judged(refusal)?, why(&refusals, server::endpoint(params)))))
        };
        if let Some((judged, reason)) = unopened.or_else(refused) {
            checked.unanswered = vec![UnansweredVersion { version: judged.version, reason }];
            versions.push(judged);
        }
    }
    if versions.is_empty() {
        checked.error = Some(match failure {
            Some(ConnectError::Http { status: 401, .. }) if options.tokens.valid.is_none() => {
                "the server requires authorization; --token TOKEN gives it".to_owned()
            }
            Some(error) => error.to_string(),
            None => no_version(&refusals, server::endpoint(params)),
        });
    }
    if !versions.is_empty() {
        checked.untried.extend(server::why_gone(params).await);
    }
    checked.untried.extend(too_many_requests(&versions));
    checked.lost_stderr = versions.iter().flat_map(|run| &run.traces).map(Trace::lost_stderr).sum();
    if let Some((newest, others)) = versions.split_first() {
        let is_uncalled =
            |it: &&UncalledTool| others.iter().all(|run| run.uncalled.iter().any(|other| other.name == it.name));
        checked.migration.clone_from(&newest.migration);
        checked.uncalled_tools = newest.uncalled.iter().filter(is_uncalled).cloned().collect();
    }
    checked.is_interrupted = !is_done && params.shutdown.is_cancelled();
    checked.is_budget_spent = checked.error.is_none() && !checked.is_interrupted && budget.is_over();
    let of_version =
        |run: &VersionRun| checked_version(&run.traces.iter().collect::<Vec<_>>(), run.version, &run.outcomes);
    checked.versions = versions.iter().map(of_version).collect();
    if !options.counts_sdk {
        checked.accept_sdk();
    }
    let traces = versions.into_iter().map(|VersionRun { version, traces, .. }| VersionTraces { version, traces });
    CheckRun { checked, traces: traces.collect() }
}

/// What a limit on requests has kept from being tried.
fn too_many_requests(versions: &[VersionRun]) -> Option<String> {
    let events = versions.iter().flat_map(|run| &run.traces).flat_map(Trace::events);
    let count =
        events.filter(|it| matches!(&it.kind, EventKind::HttpResponse { status, .. } if *status == 429)).count();
    let requests = if count == 1 { "1 request".to_owned() } else { format!("{count} requests") };
    (count > 0).then(|| {
        format!("the server refused {requests} with HTTP 429 (too many requests); a higher limit for the check lets it try all")
    })
}

/// What is tried in which version.
struct Plan {
    /// Those in which everything is tried: the newest of each era, or all that the user has named.
    full: Vec<Version>,
    /// The newest, which shows what belongs to the process.
    newest: Option<Version>,
    has_modern: bool,
}

impl Plan {
    /// For these versions of a server.
    fn new(spoken: &[Version], options: &CheckOptions) -> Plan {
        let newest = |era: Era| spoken.iter().copied().filter(move |version| version.era() == era).max();
        let full = match options.versions.is_empty() {
            true => newest(Era::Modern).into_iter().chain(newest(Era::Legacy)).collect(),
            false => spoken.to_vec(),
        };
        Plan { full, newest: spoken.iter().copied().max(), has_modern: newest(Era::Modern).is_some() }
    }

    /// Says of what was not tried in a version where it was tried.
    fn explain(&self, versions: &mut [VersionRun]) {
        let tested = |run: &VersionRun, id: &str| {
            let outcome = run.outcomes.iter().find(|(check, _)| check.id == id);
            outcome.is_some_and(|(_, outcome)| outcome.judgement.exercised > 0)
        };
        let full: Vec<_> = versions.iter().filter(|run| self.full.contains(&run.version)).collect();
        let explained: Vec<Vec<_>> = versions
            .iter()
            .map(|run| {
                let is_untried = |outcome: &CheckOutcome| {
                    let Judgement { exercised, untested, .. } = &outcome.judgement;
                    let has_reason = *exercised > 0 || untested.is_some() || outcome.cause.is_some();
                    outcome.verdict == CheckVerdict::NotTested && !has_reason
                };
                let extent = self.extent(run.version);
                let untried = run.outcomes.iter().enumerate().filter(|(_, (_, outcome))| is_untried(outcome));
                let reasons = untried.filter_map(|(index, (check, _))| {
                    let elsewhere = full.iter().find(|it| it.version != run.version && tested(it, &check.id));
                    match (extent, elsewhere) {
                        (Extent::Whole, _) | (Extent::Protocol, None) => None,
                        (Extent::Protocol, Some(it)) => Some((index, format!("tried in {}", it.version))),
                        (Extent::Brief, Some(it)) => {
                            Some((index, format!("tried in {}; `--protocol all` tries it here too", it.version)))
                        }
                        (Extent::Brief, None) => {
                            Some((index, "`--protocol all` tries more in this version".to_owned()))
                        }
                    }
                });
                reasons.collect()
            })
            .collect();
        for (run, reasons) in versions.iter_mut().zip(explained) {
            for (index, reason) in reasons {
                let outcome = &mut run.outcomes[index].1;
                (outcome.reason, outcome.is_left_out) = (Some(reason), true);
            }
        }
    }

    fn extent(&self, version: Version) -> Extent {
        match self.full.contains(&version) {
            true if self.newest == Some(version) => Extent::Whole,
            true => Extent::Protocol,
            false => Extent::Brief,
        }
    }
}

/// Runs all probes in one version, and judges what came.
async fn probe(
    params: &ServerParams,
    negotiated: Negotiated,
    plan: &Plan,
    options: &CheckOptions,
    budget: &Budget,
) -> VersionRun {
    let Negotiated { version, handshake, mut connection } = negotiated;
    let transport = params.target.transport();
    let mut material = lists::material(&connection, transport, &handshake, options);
    lists::read(&mut connection, &mut material).await;
    options.tell_tools(&material);
    let before = match plan.extent(version) {
        Extent::Whole => effects::before(&mut connection, &material, options).await,
        Extent::Protocol | Extent::Brief => None,
    };
    let Survey { tools, chosen, slow, called, allowed, why } = match probes::wants_calls(options) {
        true => survey(&mut connection, &material, options).await,
        false => Survey::default(),
    };
    let has_effects = effects::after(&mut connection, &material, before).await;
    material.callable = chosen;
    material.varied_prompts = material.prompts.iter().filter(|it| options.varies(it)).cloned().collect();
    material.mirrored = lists::mirrored(&material.tools, options);
    material.endpoint = server::endpoint(params).unwrap_or_default().to_owned();
    let cases = cases(&material);
    let budget = budget.clone();
    let (extent, has_modern) = (plan.extent(version), plan.has_modern);
    let prober =
        Prober { params, options, budget, version, extent, has_modern, material, tools, slow, has_effects, cases };
    let traces = Box::pin(probes::all(&prober, connection)).await;
    let capabilities = handshake.get("capabilities").cloned().unwrap_or_default();
    let facts = Facts {
        capabilities,
        missing: lists::missing(&prober.material),
        patience: options.patience(),
        others: prober.budget.others(version),
        ..server::facts(params, options)
    };
    let (outcomes, uncalled, migration) = {
        let mut evidence = Evidence::new(&traces.iter().collect::<Vec<_>>(), version, transport, facts);
        let listed = &prober.material.tools;
        let uncalled = match probes::wants_calls(options) {
            true => lists::uncalled(&evidence, listed, options, why),
            false => Vec::new(),
        };
        evidence.facts.more_tools = match uncalled.is_empty() && prober.budget.is_over() {
            true => MoreTools::Uncalled(TIME_OVER.to_owned()),
            false => lists::more_tools(&uncalled, listed, options),
        };
        let migration = options.migrates.then(|| migration(&evidence));
        (judge_selected(&evidence, options.selected()), uncalled, migration)
    };
    let mut run = VersionRun { version, traces, outcomes, uncalled, migration };
    run.count_tools(called, allowed, why);
    run.explain_limit(&prober.budget);
    run
}

impl VersionRun {
    /// What fails, depends on time or order, and does not come from an SDK.
    fn doubtful(&self) -> impl Iterator<Item = &(&'static Check, CheckOutcome)> {
        let comes_from_sdk = |it: &CheckOutcome| it.judgement.violations.iter().all(|it| it.sdk.is_some());
        let is_doubtful = move |it: &CheckOutcome| it.verdict == CheckVerdict::Fail && !comes_from_sdk(it);
        self.outcomes.iter().filter(move |(check, outcome)| check.confirm.is_some() && is_doubtful(outcome))
    }

    /// Says why the rest was not tested of a server that has sent too much.
    fn explain_limit(&mut self, budget: &Budget) {
        let full = self.traces.iter().find(|trace| trace.is_full());
        let (most, of) = match full {
            _ if budget.is_full() => (MOST_KEPT, "a run"),
            Some(_) => (KEPT_BYTES, "a connection"),
            None => return,
        };
        let frames = full.into_iter().chain(&self.traces).flat_map(Trace::frames);
        let largest = frames.map(|frame| frame.bytes.len()).max().unwrap_or_default() >> 10;
        let most = most >> 20;
        for (_, outcome) in self.outcomes.iter_mut().filter(|(_, it)| it.verdict == CheckVerdict::NotTested) {
            outcome.reason = Some(format!(
                "the server sent more than the {most} MiB that are kept of {of}; its largest message has {largest} KiB"
            ));
        }
    }

    /// Says of checks that look at each tool how many were called, if not all.
    fn count_tools(&mut self, called: usize, allowed: usize, why: &str) {
        let is_part = |(check, outcome): &&mut (&Check, CheckOutcome)| {
            check.needs.as_deref() == Some("tool") && outcome.verdict == CheckVerdict::Pass
        };
        for (_, outcome) in self.outcomes.iter_mut().filter(is_part).filter(|_| called < allowed) {
            outcome.reason = Some(format!("{called} of {allowed} tools; {why}"));
        }
    }
}

/// Says of each violation whether it comes from an SDK that any version shows.
fn attribute_to_known(versions: &mut [VersionRun], transport: Transport) {
    let sdks = sdks(versions.iter().flat_map(|run| &run.traces), Direction::ServerToClient);
    for VersionRun { version, traces, outcomes, .. } in versions.iter_mut().filter(|_| !sdks.is_empty()) {
        let facts = Facts { sdks: sdks.clone(), ..Facts::default() };
        attribute(&Evidence::new(&traces.iter().collect::<Vec<_>>(), *version, transport, facts), outcomes);
    }
}

/// The checks that a handshake without an end can violate: whatever a server means to say, it says it so.
const OPENING: [&str; 4] = ["lsse.", "io.line.", "rpc.envelope.", "rpc.id."];

/// What can be said of a server that does not get as far as the handshake; `None` if what it sent is in order.
fn judge_opening(params: &ServerParams, version: Version, trace: Trace, options: &CheckOptions) -> Option<VersionRun> {
    if params.target.transport() != Transport::Sse && !has_message(&trace) {
        return None;
    }
    let transport = params.target.transport();
    let facts = server::facts(params, options);
    let outcomes = judge_selected(&Evidence::new(&[&trace], version, transport, facts), options.selected());
    let is_violated = |(check, outcome): &(&Check, CheckOutcome)| {
        OPENING.iter().any(|id| check.id.starts_with(id)) && !outcome.judgement.violations.is_empty()
    };
    let uncalled = Vec::new();
    outcomes.iter().any(is_violated).then(|| VersionRun {
        version,
        traces: vec![trace],
        outcomes,
        uncalled,
        migration: None,
    })
}

/// What can be said in a version when the run ends before everything was sent.
fn judge_open(params: &ServerParams, version: Version, options: &CheckOptions, budget: &Budget) -> VersionRun {
    let traces = budget.traces(version);
    let patience = options.patience();
    let why = if budget.is_over() { TIME_OVER } else { "the run was interrupted" };
    let (others, more_tools) = (budget.others(version), MoreTools::Uncalled(why.to_owned()));
    let facts = Facts { patience, others, more_tools, ..server::facts(params, options) };
    let outcomes = {
        let evidence = Evidence::new(&traces.iter().collect::<Vec<_>>(), version, params.target.transport(), facts);
        judge_selected(&evidence, options.selected())
    };
    VersionRun { version, traces, outcomes, uncalled: Vec::new(), migration: None }
}

/// Judges what a server that requires another token does without it. Its version is not known.
async fn locked(params: &ServerParams, version: Version, options: &CheckOptions, budget: &Budget) -> VersionRun {
    let material =
        Material { version: Some(version), transport: Some(params.target.transport()), ..Material::default() };
    let budget = budget.clone();
    let prober = Prober {
        params,
        options,
        budget,
        version,
        extent: Extent::Whole,
        has_modern: false,
        material,
        tools: Vec::new(),
        slow: None,
        has_effects: false,
        cases: Vec::new(),
    };
    let traces = Box::pin(probes::auth(&prober)).await;
    let evidence = Evidence::new(
        &traces.iter().collect::<Vec<_>>(),
        version,
        params.target.transport(),
        server::facts(params, options),
    );
    let reason = match options.tokens.valid {
        Some(_) => "the server refuses the token of --token",
        None => "the server requires authorization; --token TOKEN gives it",
    };
    let judged = judge_selected(&evidence, options.selected());
    // What the server declares is not known.
    let may_apply = |check: &Check, outcome: &CheckOutcome| {
        let is_declared = check.capability.is_some() || check.extension.is_some();
        is_declared && outcome.level.is_some() && check.transports.contains(&params.target.transport())
    };
    let outcomes = judged.into_iter().map(|(check, outcome)| match (check.area(), outcome.verdict) {
        ("auth", _) => (check, outcome),
        (_, CheckVerdict::NotApplicable) if !may_apply(check, &outcome) => (check, outcome),
        _ => (check, CheckOutcome::without(CheckVerdict::NotTested, reason.to_owned(), outcome.level)),
    });
    let outcomes = outcomes.collect();
    drop(evidence);
    VersionRun { version, traces, outcomes, uncalled: Vec::new(), migration: None }
}

/// Tries once more what fails and depends on time or order. What does not come again becomes a warning. Whether it was not
/// interrupted.
async fn confirm(
    run: &mut VersionRun,
    how: Confirmation,
    params: &ServerParams,
    plan: &Plan,
    options: &CheckOptions,
    budget: &Budget,
) -> bool {
    let doubtful = run.doubtful().filter(|(check, _)| check.confirm == Some(how));
    let checks: Vec<_> = doubtful.map(|(check, _)| check.id.clone()).collect();
    if checks.is_empty() {
        return true;
    }
    let again = {
        // A server that was silent for the whole time need not be waited for as long again.
        let request_timeout = options.request_timeout * if budget.is_silent() { 3 } else { 5 } / 5;
        let options = &CheckOptions { checks: checks.clone(), request_timeout, ..options.clone() };
        options.tell(CheckEvent::Confirming(run.version));
        budget.note_answer();
        let trying = async {
            match attempt(params, run.version, options, budget).await {
                Attempt::Negotiated(negotiated) => Some(probe(params, *negotiated, plan, options, budget).await),
                Attempt::Refused(_) | Attempt::Failed(..) | Attempt::Untried => None,
            }
        };
        Box::pin(budget.limit(&params.shutdown, trying)).await
    };
    let is_done = again.is_some();
    let again = again.flatten().filter(|_| !budget.is_over());
    for (check, outcome) in run.outcomes.iter_mut().filter(|(check, _)| checks.contains(&check.id)) {
        let other = again.iter().flat_map(|run| &run.outcomes).find(|(other, _)| other.id == check.id);
        outcome.reason = Some(match other.map(|(_, other)| other.verdict) {
            Some(CheckVerdict::Fail) => "seen in both of two runs".to_owned(),
            Some(_) => {
                outcome.verdict = CheckVerdict::Warn;
                "seen once in two runs".to_owned()
            }
            None => "seen once; a second run was not possible".to_owned(),
        });
    }
    is_done
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_conformance::checks;

    use super::*;

    #[test]
    fn the_sdk_that_one_version_shows_is_that_of_all() {
        let check = checks().iter().find(|it| it.id == "rpc.batch.receive").expect("the check");
        let run = |version, text: &'static str| {
            let (mut trace, mut outcome) =
                (Trace::default(), CheckOutcome::without(CheckVerdict::Fail, String::new(), None));
            trace.push_frame(Duration::ZERO, Direction::ServerToClient, text.into());
            outcome.judgement.check_at(false, None, Vec::new(), || "no answer");
            VersionRun {
                version,
                traces: vec![trace],
                outcomes: vec![(check, outcome)],
                uncalled: Vec::new(),
                migration: None,
            }
        };
        let shows = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#;
        let hides = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        for (first, sdk) in [(shows, Some("Python SDK")), (hides, None)] {
            let mut versions = [run(Version::V2025_11_25, first), run(Version::V2025_03_26, hides)];
            attribute_to_known(&mut versions, Transport::Http);
            assert_eq!(versions.map(|it| it.outcomes[0].1.judgement.violations[0].sdk), [sdk; 2]);
        }
    }
}
