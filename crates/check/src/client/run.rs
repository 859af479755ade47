//! All acts that concern a client.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use rehearse_protocol::{EventKind, Trace};

use super::{ActRun, ActScript, ClientError, ClientEvent, ClientOptions, unconfirmed_acts};

/// How many times as long a client may be idle in an act that is repeated.
const MORE_PATIENCE: u32 = 3;

/// Starts a client in each of these acts that concerns it: the first one says which do. Returns what it did.
///
/// # Errors
/// A mock or the client cannot be started, or the client does not connect in the first act.
pub async fn run_client(acts: Vec<ActScript>, options: &ClientOptions) -> Result<Vec<ActRun>, ClientError> {
    let (mut runs, mut confirmed) = (Vec::new(), BTreeSet::new());
    let is_done = tokio::select! {
        done = Box::pin(run_acts(acts, options, &mut runs, &mut confirmed)) => done.map(|()| true)?,
        () = options.shutdown.cancelled() => false,
    };
    if !is_done {
        // What another run of the act had to show is not known.
        let unconfirmed = unconfirmed_acts(&runs);
        runs.retain(|run| confirmed.contains(&run.act) || !unconfirmed.contains(&run.act));
    }
    Ok(runs)
}

async fn run_acts(
    mut acts: Vec<ActScript>,
    options: &ClientOptions,
    runs: &mut Vec<ActRun>,
    confirmed: &mut BTreeSet<String>,
) -> Result<(), ClientError> {
    let sources: Vec<_> = acts.iter().map(|act| (act.name.clone(), act.script.source.clone())).collect();
    let tell = |act: &str, ended, all| options.tell(ClientEvent::Act { name: act.to_owned(), ended, all });
    let clean = acts.remove(0);
    tell(&clean.name, 0, acts.len() + 1);
    runs.push(options.run_act(clean, true).await?);
    let used: BTreeSet<_> = runs.iter().flat_map(|run| &run.traces).filter_map(Trace::transport).collect();
    acts.retain(|act| {
        let transports = &act.script.act.transports;
        transports.is_empty() || transports.iter().any(|transport| used.contains(transport))
    });
    let usual: BTreeSet<_> = acts.iter().filter_map(|act| act.script.act.like.clone()).collect();
    let is_usual = |act: &mut ActScript| usual.contains(&act.name);
    for act in acts.extract_if(.., is_usual).collect::<Vec<_>>() {
        let needs_token = act.script.auth.is_some();
        let run = options.run_act(act, false).await?;
        // A client that looks for no authorization server here does so nowhere.
        if needs_token && !asks_for_authorization(&run) {
            acts.retain(|act| act.script.auth.is_none());
        }
        runs.push(run);
    }
    let all = acts.len() + runs.len();
    let at_once = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    let mut running = stream::iter(acts).map(|act| options.run_act(act, false)).buffered(at_once);
    while let Some(run) = running.next().await {
        let run = run?;
        tell(&run.act, runs.len(), all);
        runs.push(run);
    }
    drop(running);
    // Where the client was ended, it may only have been slow beside others.
    let unconfirmed = unconfirmed_acts(runs);
    let patient = ClientOptions { idle: MORE_PATIENCE * options.idle, ..options.clone() };
    for (name, source) in sources.into_iter().filter(|(name, _)| unconfirmed.contains(name)) {
        tell(&name, all, all);
        let again = patient.run_act(ActScript::parse(name, &source)?, false).await?;
        runs.retain(|run| run.act != again.act);
        confirmed.insert(again.act.clone());
        runs.push(again);
    }
    Ok(())
}

/// Whether the client has looked for an authorization server.
fn asks_for_authorization(run: &ActRun) -> bool {
    let is_metadata =
        |kind: &EventKind| matches!(kind, EventKind::HttpRequest { target, .. } if target.contains("/.well-known/"));
    run.traces.iter().any(|trace| trace.events().any(|event| is_metadata(&event.kind)))
}
