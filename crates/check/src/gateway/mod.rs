//! The check of a gateway: our client is on one side of it, and a mock on the other. Each exchange is seen twice, and the
//! judges compare what went in with what came out.
//!
//! In each version the gateway is started anew, with a mock that has what must reach the client as it is: all types of
//! content, errors with data, large numbers, many pages. At the end the mock goes, and the gateway is asked once more.

mod options;
mod start;
mod work;

use std::collections::BTreeSet;

use rehearse_client::ConnectError;
use rehearse_conformance::{
    Check, CheckOutcome, Evidence, Facts, JudgedVersion, Recorded, Role, checks_of, judge_recorded, judge_selected,
};
use rehearse_document::Source;
use rehearse_protocol::{Trace, Transport, Version};
use rehearse_report::check::{CheckVerdict, CheckedServer, UnansweredVersion};

pub use self::options::{GatewayError, GatewayOptions};
use self::work::{Client, Work};
use crate::{
    client::{ActScript, ActServer, ClientError},
    report::checked_version,
    selects,
};

/// What the upstream is.
const UPSTREAM: &str = include_str!("../../gateway/upstream.yaml");
/// The newest version of each era.
const VERSIONS: [Version; 2] = [Version::LATEST, Version::LATEST_LEGACY];

/// The check that looks at every call.
const ARRIVES: &str = "gateway.request.arrives";

/// The traces of both sides of a gateway in one version.
#[derive(Debug)]
pub struct GatewayTraces {
    /// The version that its clients used.
    pub version: Version,
    /// How its clients reached it.
    pub transport: Transport,
    /// The connections of its clients.
    pub clients: Vec<Trace>,
    /// Its connections with the upstream.
    pub upstream: Vec<Trace>,
    /// What only the clients know.
    pub token: String,
    /// Whether the gateway stopped answering before its upstream was ended.
    pub is_lost: bool,
}

/// Checks a gateway in each era. The result is that of the gateway, and then what it does as a server and as a client.
///
/// # Errors
/// The gateway or the mock cannot be started. A version that it does not speak is in the result.
pub async fn check_gateway(options: &GatewayOptions) -> Result<Vec<CheckedServer>, GatewayError> {
    let mut checked = CheckedServer::new(options.target(), options.transport());
    let (mut runs, mut refused) = (Vec::new(), Vec::new());
    for version in
        VERSIONS.into_iter().filter(|version| options.versions.is_empty() || options.versions.contains(version))
    {
        tokio::select! {
            biased;
            () = options.shutdown.cancelled() => {
                checked.is_interrupted = true;
                break;
            }
            run = Box::pin(run_gateway(options, version)) => match run? {
                Ok(run) => runs.push(run),
                Err(error) => refused.push(UnansweredVersion { version, reason: error.to_string() }),
            },
        }
    }
    if runs.is_empty() {
        checked.error = refused.pop().map(|it| it.reason);
    } else if !options.versions.is_empty() {
        checked.unanswered = refused;
    }
    let sides = [Role::Server, Role::Client].into_iter().filter_map(|role| side(options, &runs, role));
    let sides: Vec<_> = sides.collect();
    for run in &runs {
        judge(options, run, &mut checked);
        let untried = format!("{}: the gateway stopped answering before everything was asked", run.version);
        checked.untried.extend(run.is_lost.then_some(untried));
    }
    Ok([checked].into_iter().chain(sides).collect())
}

/// Judges both sides of a gateway in one version.
pub fn judge_gateway(run: &GatewayTraces, checks: &[String]) -> CheckedServer {
    let mut checked = CheckedServer::new(String::new(), run.transport);
    let options = GatewayOptions { checks: checks.to_vec(), ..GatewayOptions::default() };
    judge(&options, run, &mut checked);
    checked
}

fn judge(options: &GatewayOptions, run: &GatewayTraces, checked: &mut CheckedServer) {
    let [clients, upstream]: [Vec<&Trace>; 2] = [&run.clients, &run.upstream].map(|traces| traces.iter().collect());
    let facts = Facts { role: Role::Gateway, secrets: vec![run.token.clone()], ..Facts::default() };
    let of_upstream = upstream.iter().find_map(|trace| trace.transport()).unwrap_or(Transport::Http);
    let evidence = Evidence::new(&clients, run.version, run.transport, facts).with_upstream(&upstream, of_upstream);
    let wanted = checks_of(Role::Gateway).filter(|check| options.is_selected(&check.id));
    let outcomes = judge_selected(&evidence, wanted);
    let is_compared = outcomes.iter().any(|(check, it)| check.id == ARRIVES && it.judgement.exercised > 0);
    let is_meant = options.is_selected(ARRIVES);
    let untried = format!("{}: no call had a result that could be compared with the upstream", run.version);
    checked.untried.extend((is_meant && !is_compared).then_some(untried));
    checked.versions.push(checked_version(&[clients, upstream].concat(), run.version, &outcomes));
}

/// What the gateway does as a server or as a client, whatever is on its other side; `None` if nothing of it was tested.
fn side(options: &GatewayOptions, runs: &[GatewayTraces], role: Role) -> Option<CheckedServer> {
    let (own, other, word) = match role {
        Role::Client => (recorded(runs, |run| &run.upstream), recorded(runs, |run| &run.clients), "as a client"),
        _ => (recorded(runs, |run| &run.clients), recorded(runs, |run| &run.upstream), "as a server"),
    };
    let mut checked = CheckedServer::new(format!("{} {word}", options.target()), own.first()?.trace.transport()?);
    // What passes through is not its own.
    let passed: BTreeSet<_> =
        judged(other, role).flat_map(|it| it.outcomes).filter(is_violated).map(|(it, _)| &it.id).collect();
    for mut version in judged(own, role) {
        version.outcomes.retain(|(check, outcome)| {
            let is_meant = options.is_selected(&check.id) && !passed.contains(&check.id) && check.area() != "io";
            is_meant && (role == Role::Client || check.is_passive()) && outcome.verdict != CheckVerdict::NotTested
        });
        checked.versions.push(checked_version(&version.traces, version.version, &version.outcomes));
    }
    if !options.counts_sdk {
        checked.accept_sdk();
    }
    checked.versions.iter().any(|it| !it.checks.is_empty()).then_some(checked)
}

/// One side in all runs. A connection that does not show its version has that of the others of its run.
fn recorded(runs: &[GatewayTraces], of: impl Fn(&GatewayTraces) -> &Vec<Trace>) -> Vec<Recorded<'_>> {
    let of_run = |run| {
        let traces = of(run);
        let spoken: BTreeSet<_> = traces.iter().flat_map(Evidence::versions).collect();
        let asked = spoken.first().copied().filter(|_| spoken.len() == 1);
        traces.iter().map(move |trace| Recorded { trace, asked })
    };
    runs.iter().flat_map(of_run).collect()
}

fn judged(recorded: Vec<Recorded<'_>>, role: Role) -> impl Iterator<Item = JudgedVersion<'_>> {
    let transport = recorded.iter().find_map(|it| it.trace.transport()).unwrap_or(Transport::Http);
    judge_recorded(recorded, transport, &Facts { role, is_local: true, ..Facts::default() }).versions.into_iter()
}

fn is_violated((_, outcome): &(&'static Check, CheckOutcome)) -> bool {
    matches!(outcome.verdict, CheckVerdict::Fail | CheckVerdict::Warn)
}

/// Starts the gateway before a mock, and lets clients of a version work through it.
///
/// # Errors
/// It, or the mock, cannot be started. The inner error says that it does not speak the version.
pub async fn run_gateway(
    options: &GatewayOptions,
    version: Version,
) -> Result<Result<GatewayTraces, ConnectError>, GatewayError> {
    let script = Source::new("upstream.yaml", UPSTREAM);
    let act = ActScript::parse("upstream".to_owned(), &script).map_err(ClientError::from)?;
    let upstream = ActServer::start(act, options.seed, options.upstream, options.program.as_deref()).await?;
    let started = start::start(options, &upstream).await?;
    let token = options.token.clone().unwrap_or_else(|| format!("{:032x}", rand::random::<u128>()));
    let params = started.params(options, &token);
    let client = Client::connect(&params, version, options).await;
    let walked = match client {
        Err(error) => Err(error),
        Ok(client) => Ok(client.work(&params, upstream, options).await),
    };
    started.stop(&options.shutdown).await;
    let transport = params.target.transport();
    Ok(walked.map(|Work { clients, upstream, is_lost }| GatewayTraces {
        version,
        transport,
        clients,
        upstream,
        token,
        is_lost,
    }))
}

impl GatewayOptions {
    fn is_selected(&self, id: &str) -> bool {
        self.checks.is_empty() || self.checks.iter().any(|pattern| selects(pattern, id))
    }
}
