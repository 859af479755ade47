//! Gives each target its turns, until the time is over.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use serde_json::Value as Json;
use tokio::{task::yield_now, time::Instant};

use crate::{
    audit, effects,
    error::FuzzError,
    options::{FuzzEvent, FuzzOptions},
    server::Server,
    survey,
    target::Target,
    trial::Trial,
};
use rehearse_client::ServerParams;
use rehearse_report::fuzz::{FuzzBug, FuzzInput, FuzzResult, Oracle, TargetKind};

/// How many inputs a target gets before the next one has its turn, and how long its turn is at least.
const TURN: usize = 50;
const SHORTEST_TURN: Duration = Duration::from_millis(200);
/// Each target has at least so many turns, if its inputs are answered at once.
const TURNS: u32 = 4;

/// What has come of a run.
#[derive(Debug)]
pub struct FuzzRun {
    /// Its result. The caller knows what the server is called, whether warnings count, and so the verdict.
    pub result: FuzzResult,
    /// The targets as they are listed.
    pub planned: Vec<Target>,
    /// The inputs of the bugs, and the first with each kind of answer.
    pub interesting: Vec<FuzzInput>,
}

impl FuzzRun {
    /// The bugs that are no warnings, a text each.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.result.bugs.iter().filter(|bug| !bug.oracle.is_warning());
        failures.map(|bug| format!("{} {}: {} {}", bug.oracle, bug.target, bug.message, bug.input())).collect()
    }
}

/// The targets of a server, and why some are not tried.
///
/// # Errors
/// [`FuzzError`].
pub async fn plan(params: &ServerParams, options: &FuzzOptions) -> Result<Vec<Target>, FuzzError> {
    let mut server = Server::start(params, options).await?;
    let targets = targets(&server).await;
    server.close().await;
    targets
}

async fn targets(server: &Server<'_>) -> Result<Vec<Target>, FuzzError> {
    match server.session() {
        Some(session) => survey::targets(session, server.options).await,
        None => Ok(Vec::new()),
    }
}

/// Fuzzes a server. One that ends is started again.
///
/// # Errors
/// [`FuzzError`].
pub async fn fuzz(params: &ServerParams, options: &FuzzOptions) -> Result<FuzzRun, FuzzError> {
    let started = Instant::now();
    let mut server = Server::start(params, options).await?;
    let planned = targets(&server).await?;
    let (own, protocol) = names(&server);
    let (mut bugs, mut cases, mut error) = (Vec::new(), 0, None);
    let count = u32::try_from(planned.len()).unwrap_or(u32::MAX).max(1);
    // Where there are too many for that, each has one short turn.
    let turn = (options.budget / count / TURNS).max(SHORTEST_TURN.min(options.budget / count));
    let mut trials = Vec::with_capacity(planned.len());
    for target in &planned {
        trials.push(Trial::new(target, options));
        yield_now().await;
    }
    let mut receivers = receivers(&planned);
    let mut offered = HashSet::new();
    while !trials.iter().all(Trial::is_done) && !server.is_over() {
        for index in 0..trials.len() {
            let mut offers = Vec::new();
            let trial = &mut trials[index];
            let begun = Instant::now();
            for _ in 0..TURN {
                if trial.is_done() || server.is_over() || begun.elapsed() >= turn {
                    break;
                }
                cases += 1;
                let found = trial.next(&mut server).await;
                offers.extend(trial.take_values());
                let Some(found) = found else { continue };
                let is_same = |it: &FuzzBug| {
                    (it.oracle, &it.target, &it.arguments) == (found.oracle, &found.target, &found.arguments)
                };
                if bugs.iter().any(is_same) {
                    continue;
                }
                options.send(FuzzEvent::Found(found.oracle, found.target.clone()));
                bugs.push(found);
            }
            for offer in offers {
                let name = offer.name.to_ascii_lowercase();
                if let Some(receivers) =
                    receivers.get_mut(&name).filter(|_| offered.insert((name, offer.value.to_string())))
                {
                    receivers.retain(|other| *other == index || trials[*other].take_offer(&offer));
                }
            }
            options.send(FuzzEvent::Sent(cases));
            error = server.gone();
            if error.is_some() {
                break;
            }
        }
        if error.is_some() {
            break;
        }
    }
    let odd: Vec<_> = trials.iter_mut().flat_map(Trial::take_odd).collect();
    let usual: Vec<_> = trials.iter().filter_map(Trial::good).collect();
    let mut differences = Vec::new();
    for (target, input) in usual.iter().filter(|(target, _)| target.is_idempotent && error.is_none()) {
        differences.extend(effects::difference(&mut server, target, input).await);
    }
    differences.iter().for_each(|bug| options.send(FuzzEvent::Found(bug.oracle, bug.target.clone())));
    bugs.extend(differences);
    if error.is_none() {
        let violations = audit::violations(&mut server, &usual, &odd).await.unwrap_or_default();
        violations.iter().for_each(|bug| options.send(FuzzEvent::Found(bug.oracle, bug.target.clone())));
        bugs.extend(violations);
    }
    if server.private().is_none() {
        bugs.retain(|bug| bug.oracle != Oracle::PrivateData);
    }
    let targets = trials.into_iter().map(Trial::finish).collect();
    bugs.sort_by(|one, other| (one.oracle, &one.target).cmp(&(other.oracle, &other.target)));
    let inputs = bugs.iter().map(|bug| (&bug.target, &bug.arguments));
    let inputs = inputs.chain(odd.iter().map(|odd| (&odd.target.id, &odd.input)));
    let interesting = inputs.map(|(target, input)| FuzzInput { target: target.clone(), arguments: input.clone() });
    let interesting = interesting.collect();
    server.close().await;
    let (seed, duration) = (options.seed, started.elapsed());
    let result = FuzzResult { server: own, protocol, duration, cases, targets, bugs, error, ..FuzzResult::new(seed) };
    Ok(FuzzRun { result, planned, interesting })
}

/// The tools with an argument of each name, which is in lower case.
fn receivers(targets: &[Target]) -> HashMap<String, Vec<usize>> {
    let mut found: HashMap<_, Vec<_>> = HashMap::new();
    for (index, target) in targets.iter().enumerate().filter(|(_, target)| target.id.kind == TargetKind::Tool) {
        for name in target.schema["properties"].as_object().into_iter().flat_map(|it| it.keys()) {
            found.entry(name.to_ascii_lowercase()).or_default().push(index);
        }
    }
    found
}

/// The name and version that the server gives itself, and the protocol version.
fn names(server: &Server<'_>) -> (Option<String>, String) {
    let Some(info) = server.session().map(|session| session.info()) else { return (None, String::new()) };
    let own = info.server_info.as_ref().and_then(|it| serde_json::from_str::<Json>(it.get()).ok()).unwrap_or_default();
    let own = own["name"].as_str().map(|name| format!("{name} {}", own["version"].as_str().unwrap_or_default()));
    (own, info.version.to_string())
}
