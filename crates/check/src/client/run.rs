//! All acts that concern a client.

use std::collections::BTreeSet;

use futures_util::{StreamExt, stream};
use rehearse_protocol::{Era, EventKind, Trace};

use super::{
    ActRun, ActScript, ClientError, ClientEvent, ClientOptions,
    composite::{compose, grouped, tool_of},
    division::{Division, divide},
    judge::{Violated, Violations, add_violated, called_tools, is_complete, spoken_eras},
    unconfirmed_acts,
};

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
        let is_unconfirmed = |act: &String| unconfirmed.contains(act) && !confirmed.contains(act);
        runs.retain(|run| !run.acts.iter().any(is_unconfirmed));
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
    let spoken = spoken_eras(&runs[0]);
    // A client that begins with newer versions may know older ones, and then speaks them only with an older server.
    let is_older = |act: &ActScript| act.script.versions.iter().all(|version| version.era() == Era::Legacy);
    let may_speak = |act: &ActScript, era| spoken.contains(&era) || (era == Era::Legacy && is_older(act));
    acts.retain(|act| act.script.act.era.is_none_or(|era| may_speak(act, era)));
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
    let mut groups = match options.are_merged {
        true => {
            let called = called_tools(&runs[0]);
            grouped(acts, |tool| called.contains(tool))
        }
        false => acts.into_iter().map(|act| vec![act]).collect(),
    };
    let is_foreign = |act: &ActScript| act.script.act.era.is_some_and(|era| !spoken.contains(&era));
    let mut later: Vec<_> = groups.extract_if(.., |group| group.iter().all(is_foreign)).collect();
    if groups.is_empty() {
        // No other act shows whether the client speaks that era.
        groups.append(&mut later);
    }
    let mut all = groups.len() + later.len() + runs.len();
    let (mut held, mut violated) = (Vec::new(), Violations::new());
    while !groups.is_empty() {
        let at_once = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        let mut running = stream::iter(groups).map(|group| options.run_group(group)).buffered(at_once);
        let mut ended = runs.len();
        while let Some((group, run)) = running.next().await.transpose()? {
            tell(&run.acts[0], ended, all);
            ended += 1;
            match group.len() {
                1.. => held.push((group, run)),
                0 => runs.push(run),
            }
        }
        drop(running);
        let composed = held.iter().map(|(_, run)| run);
        let is_spoken = |era| runs.iter().chain(composed.clone()).any(|run| spoken_eras(run).contains(&era));
        let speaks = [Era::Legacy, Era::Modern].map(|era| (era, is_spoken(era)));
        let is_known = |act: &ActScript| act.script.act.era.is_none_or(|era| speaks.contains(&(era, true)));
        (groups, held) = divided(held, runs, &mut violated);
        groups.extend(later.extract_if(.., |group| group.iter().all(is_known)));
        groups.iter_mut().for_each(|group| group.retain(is_known));
        groups.retain(|group| !group.is_empty());
        all = runs.len() + held.len() + groups.len();
    }
    runs.extend(held.into_iter().map(|(_, run)| run));
    // Where the client was ended, it may only have been slow beside others.
    let unconfirmed = unconfirmed_acts(runs);
    let patient = ClientOptions { is_repeat: true, ..options.clone() };
    for (name, source) in sources.into_iter().filter(|(name, _)| unconfirmed.contains(name)) {
        tell(&name, all, all);
        let again = patient.run_act(ActScript::parse(name, &source)?, false).await?;
        runs.retain(|run| run.acts != again.acts);
        confirmed.extend(again.acts.iter().cloned());
        runs.push(again);
    }
    Ok(())
}

impl ClientOptions {
    /// Runs the client in one act, or in the composite act of several. These come back.
    ///
    /// # Errors
    /// The mock or the client cannot be started.
    async fn run_group(&self, mut acts: Vec<ActScript>) -> Result<(Vec<ActScript>, ActRun), ClientError> {
        let act = match acts.len() {
            1 => acts.remove(0),
            _ => compose(&acts)?,
        };
        Ok((acts, self.run_act(act, false).await?))
    }
}

/// A composite act that has been run: its acts, and what the client did.
type Composed = (Vec<ActScript>, ActRun);

/// Accepts the composite acts that stand for their acts, and divides others. What is violated in several is looked for in
/// the first of them; the others wait. So does one in which the client has done everything, if acts of it are suspect: once
/// these have been run alone and show what is violated, it stands for the others. Returns what is to be run, and what waits.
fn divided(
    held: Vec<Composed>,
    runs: &mut Vec<ActRun>,
    violated: &mut Violations,
) -> (Vec<Vec<ActScript>>, Vec<Composed>) {
    let first = runs.len();
    let (acts, composed): (Vec<_>, Vec<_>) = held.into_iter().unzip();
    runs.extend(composed);
    add_violated(violated, runs);
    let composed = runs.split_off(first);
    let alone = runs.iter().filter(|run| run.acts.len() == 1);
    let known: Vec<_> = alone.flat_map(|run| &violated[&run.acts]).collect();
    let is_known = |it: &&Violated| known.iter().any(|known| known.is_as_bad_as(it));
    let (mut groups, mut waiting, mut sought) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (acts, run) in acts.into_iter().zip(composed) {
        let called = called_tools(&run);
        let is_met = acts.iter().filter_map(|act| tool_of(&act.name)).all(|tool| called.contains(tool));
        let is_met = is_met && is_complete(&run, &runs[0]);
        let unknown: BTreeSet<_> = violated[&run.acts].iter().filter(|it| !is_known(it)).collect();
        match (is_met, unknown.is_empty()) {
            (true, true) => runs.push(run),
            (true, false) if unknown.is_subset(&sought) => waiting.push((acts, run)),
            _ => {
                match divide(acts, &unknown.iter().map(|it| it.check()).collect()) {
                    Division::Suspects(alone, rest) => {
                        groups.extend(alone.into_iter().map(|act| vec![act]));
                        if is_met { waiting.push((rest, run)) } else { groups.push(rest) }
                    }
                    Division::Halves(one, other) => groups.extend([one, other]),
                }
                sought.extend(unknown);
            }
        }
    }
    (groups, waiting)
}

/// Whether the client has looked for an authorization server.
fn asks_for_authorization(run: &ActRun) -> bool {
    let is_metadata =
        |kind: &EventKind| matches!(kind, EventKind::HttpRequest { target, .. } if target.contains("/.well-known/"));
    run.traces.iter().any(|trace| trace.events().any(|event| is_metadata(&event.kind)))
}
