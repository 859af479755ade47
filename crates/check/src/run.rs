//! A whole run against one server.

use futures_util::future::{join, join_all};
use rehearse_client::{ConnectError, ServerParams};
use rehearse_conformance::{
    Check, CheckOutcome, CheckVerdict, Evidence, Facts, Judgement, Material, Role, cases, checks_of,
};
use rehearse_protocol::{Era, Trace, Version};
use rehearse_report::check::{CheckedServer, UnansweredVersion};
use tokio::time::Instant;

use crate::{
    CheckEvent, CheckOptions,
    detection::{Attempt, Negotiated, Refusal, attempt, candidates, no_version, unanswered},
    lists,
    options::Budget,
    prober::Prober,
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

/// One version.
struct VersionRun {
    version: Version,
    traces: Vec<Trace>,
    /// The outcome of every selected check.
    outcomes: Vec<(&'static Check, CheckOutcome)>,
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
pub async fn check(params: &ServerParams, options: &CheckOptions) -> CheckRun {
    let (params, options) = &server::prepared(params, options);
    let started = Instant::now();
    let budget = &Budget::new(started + options.budget);
    let mut checked = CheckedServer::new(target_text(&params.target), params.target.transport());
    let mut versions: Vec<VersionRun> = Vec::new();
    let mut failure = None;
    let mut refusals = Vec::new();
    let mut unopened = None;
    let all = candidates(&params.target, options);
    let checking = all.iter().map(|version| async {
        let begun = Instant::now();
        let attempted = attempt(params, *version, options, budget).await;
        let started_in = begun.elapsed();
        match attempted {
            Attempt::Negotiated(negotiated) => {
                let info = peer_info(&negotiated.handshake, "serverInfo");
                options.tell(CheckEvent::Probing(*version));
                let mut probed = Box::pin(probe(params, *negotiated, options, budget)).await;
                Box::pin(confirm(&mut probed, params, options, budget)).await;
                options.tell(CheckEvent::Judged(*version));
                Ok((probed, info, started_in))
            }
            Attempt::Refused(refusal) => Err((None, Some(refusal))),
            Attempt::Failed(error, trace) => Err((Some((error, *version, trace)), None)),
        }
    });
    for result in join_all(checking).await {
        match result {
            Ok((version, info, started_in)) => {
                if versions.is_empty() {
                    checked.started_in = started_in;
                }
                if let (None, Some((name, version))) = (&checked.name, info) {
                    (checked.name, checked.server_version) = (Some(name), Some(version));
                }
                versions.push(version);
            }
            Err((Some((error, version, trace)), _)) => {
                let judged = judge_opening(params, version, trace, options);
                unopened = unopened.or_else(|| Some((judged?, error.to_string())));
                failure = Some(error);
            }
            Err((None, refusal)) => refusals.extend(refusal),
        }
    }
    if versions.is_empty() && refusals.iter().any(Refusal::is_unauthorized) {
        let version = all.iter().find(|version| **version == Version::LATEST_LEGACY).or(all.first());
        versions.extend(join_all(version.map(|version| locked(params, *version, options, budget))).await);
    }
    if versions.iter().any(|it| it.version.era() == Era::Legacy) {
        let unanswered = unanswered(&refusals).into_iter();
        checked.unanswered = unanswered.map(|(version, reason)| UnansweredVersion { version, reason }).collect();
    }
    if versions.is_empty() {
        let refused = || {
            let (judged, why) =
                (|it: &Refusal| judge_opening(params, it.version, it.trace.clone(), options), no_version);
            refusals.iter().find_map(|refusal| Some((judged(refusal)?, why(&refusals))))
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
            None => no_version(&refusals),
        });
    }
    checked.is_budget_spent = checked.error.is_none() && budget.is_over();
    let of_version =
        |run: &VersionRun| checked_version(&run.traces.iter().collect::<Vec<_>>(), run.version, &run.outcomes);
    checked.versions = versions.iter().map(of_version).collect();
    let traces = versions.into_iter().map(|VersionRun { version, traces, .. }| VersionTraces { version, traces });
    CheckRun { checked, traces: traces.collect() }
}

/// Runs all probes in one version, and judges what came.
async fn probe(params: &ServerParams, negotiated: Negotiated, options: &CheckOptions, budget: &Budget) -> VersionRun {
    let Negotiated { version, handshake, mut connection } = negotiated;
    let transport = params.target.transport();
    let mut material = lists::material(&connection, transport, &handshake, options);
    lists::read(&mut connection, &mut material).await;
    let Survey { tools, chosen, slow } = survey(&mut connection, &material, options).await;
    material.callable = chosen;
    material.mirrored = lists::mirrored(&material.tools, options);
    material.endpoint = server::endpoint(params).unwrap_or_default().to_owned();
    let cases = cases(&material);
    let budget = budget.clone();
    let prober = Prober { params, options, budget, version, material, tools, slow, cases };
    let (main, others) =
        join(Box::pin(probes::main_connection(&prober, connection)), Box::pin(probes::others(&prober))).await;
    let traces: Vec<_> = [main].into_iter().chain(others).collect();
    let capabilities = handshake.get("capabilities").cloned().unwrap_or_default();
    let facts = Facts {
        capabilities,
        is_listing: options.listing,
        missing: lists::missing(&prober.material),
        patience: options.request_timeout / 2,
        ..server::facts(params)
    };
    let outcomes = {
        let evidence = Evidence::new(&traces.iter().collect::<Vec<_>>(), version, transport, facts);
        checks_of(Role::Server)
            .filter(|check| options.is_selected(&check.id))
            .map(|check| (check, check.judge(&evidence)))
            .collect()
    };
    VersionRun { version, traces, outcomes }
}

/// What can be said of a server that opens the event stream of HTTP+SSE and then does not get as far as the handshake;
/// `None` if its stream is in order.
fn judge_opening(params: &ServerParams, version: Version, trace: Trace, options: &CheckOptions) -> Option<VersionRun> {
    let transport = params.target.transport();
    let facts = Facts { is_listing: options.listing, ..server::facts(params) };
    let selected = checks_of(Role::Server).filter(|check| options.is_selected(&check.id));
    let outcomes: Vec<_> = {
        let evidence = Evidence::new(&[&trace], version, transport, facts);
        selected.map(|check| (check, check.judge(&evidence))).collect()
    };
    let is_violated =
        |(check, outcome): &(&Check, CheckOutcome)| check.area() == "lsse" && !outcome.judgement.violations.is_empty();
    outcomes.iter().any(is_violated).then(|| VersionRun { version, traces: vec![trace], outcomes })
}

/// Judges what a server that requires another token does without it. Its version is not known.
async fn locked(params: &ServerParams, version: Version, options: &CheckOptions, budget: &Budget) -> VersionRun {
    let material =
        Material { version: Some(version), transport: Some(params.target.transport()), ..Material::default() };
    let budget = budget.clone();
    let prober =
        Prober { params, options, budget, version, material, tools: Vec::new(), slow: None, cases: Vec::new() };
    let traces = Box::pin(probes::auth(&prober)).await;
    let evidence =
        Evidence::new(&traces.iter().collect::<Vec<_>>(), version, params.target.transport(), server::facts(params));
    let reason = match options.tokens.valid {
        Some(_) => "the server refuses the token of --token",
        None => "the server requires authorization; --token TOKEN gives it",
    };
    let judged = checks_of(Role::Server)
        .filter(|check| options.is_selected(&check.id))
        .map(|check| (check, check.judge(&evidence)));
    let outcomes = judged.map(|(check, outcome)| match (check.area(), outcome.verdict) {
        ("auth", _) | (_, CheckVerdict::NotApplicable) => (check, outcome),
        _ => {
            let judgement = Judgement::default();
            (check, CheckOutcome { verdict: CheckVerdict::NotTested, reason: Some(reason.to_owned()), judgement })
        }
    });
    let outcomes = outcomes.collect();
    drop(evidence);
    VersionRun { version, traces, outcomes }
}

/// Runs all probes once more if a failure depends on time or order. One that does not come again becomes a warning.
async fn confirm(run: &mut VersionRun, params: &ServerParams, options: &CheckOptions, budget: &Budget) {
    let is_doubtful =
        |(check, outcome): &(&Check, CheckOutcome)| check.confirm && outcome.verdict == CheckVerdict::Fail;
    if !run.outcomes.iter().any(is_doubtful) {
        return;
    }
    options.tell(CheckEvent::Confirming(run.version));
    let again = match attempt(params, run.version, options, budget).await {
        Attempt::Negotiated(negotiated) => Some(Box::pin(probe(params, *negotiated, options, budget)).await),
        Attempt::Refused(_) | Attempt::Failed(..) => None,
    };
    let again = again.filter(|_| !budget.is_over());
    for (check, outcome) in &mut run.outcomes {
        if !check.confirm || outcome.verdict != CheckVerdict::Fail {
            continue;
        }
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
}
