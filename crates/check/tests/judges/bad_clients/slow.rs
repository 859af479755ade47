//! Clients that take their time: a conformant one is never accused, and a bad one does not pass.

use rand::{SeedableRng, rngs::StdRng};
use rehearse_conformance::{CheckVerdict, Evidence, checks};
use rehearse_protocol::{Direction, Trace};

use super::{
    BadClient, KNOWN, bad_clients,
    base::{Base, bases, evidence},
    others, reported, violated,
};
use crate::delay::{Slowness, delayed, seeds};

/// What only a fast client violates.
const TOO_FAST: [&str; 10] = [
    "client-io.shutdown.waits",
    "client-list.cache.no-polling",
    "client-ping.send.rate",
    "client-res.comp.debounced",
    "client-sse.resume.bounded",
    "client-sse.resume.retry-respected",
    "client-sub.end.abrupt-relisten",
    "client-sub.end.graceful",
    "client-tasks.ext.poll-interval",
    "client-tasks.legacy.poll-interval",
];

/// What a client that is slow would have done.
fn slow(traces: &[Trace], slowness: Slowness, seed: u64) -> Vec<Trace> {
    let mut random = StdRng::seed_from_u64(seed);
    traces.iter().map(|trace| delayed(trace, Direction::ClientToServer, slowness, &mut random)).collect()
}

fn slownesses() -> impl Iterator<Item = (Slowness, u64)> {
    (0..seeds(1)).flat_map(|seed| Slowness::ALL.map(|slowness| (slowness, seed)))
}

/// Lets the checks judge the slow twin of our client in each place.
fn accused(bases: &[Base]) -> Vec<String> {
    let mut wrong = Vec::new();
    for base in bases {
        for (slowness, seed) in slownesses() {
            let traces = slow(&base.traces, slowness, seed);
            let found = violated(&evidence(&traces, base, None)).into_iter();
            let place = format!("{} {} {}", base.server, base.transport, base.version);
            let found = found.filter(|id| !KNOWN.contains(&(base.server, id)));
            wrong.extend(found.map(|id| format!("{place}, {slowness:?} {seed}: our client violates {id}")));
        }
    }
    wrong
}

/// Lets the checks judge the slow twins of bad clients.
fn passed(bad_clients: &[BadClient], bases: &[(&Base, Evidence<'_>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for bad in bad_clients.iter().filter(|bad| !bad.allowed) {
        let check = checks().iter().find(|check| check.id == bad.check).expect("a check");
        let (Some((base, traces)), _) = reported(bad, check, bases) else { continue };
        for (slowness, seed) in slownesses() {
            let traces = slow(&traces, slowness, seed);
            let evidence = evidence(&traces, base, Some(bad));
            let place =
                format!("{} ({} {} {}), {slowness:?} {seed}", bad.check, base.server, base.transport, base.version);
            if check.judge(&evidence).verdict == CheckVerdict::Pass && !TOO_FAST.contains(&&*bad.check) {
                wrong.push(format!("{place}: passed"));
            }
            let others = others(bad, base, &evidence);
            if !others.is_empty() {
                wrong.push(format!("{place}: also {others:?}"));
            }
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_is_never_accused_and_a_slow_bad_one_never_passes() {
    let all = bases().await;
    let judged: Vec<_> = all.iter().map(|base| (base, evidence(&base.traces, base, None))).collect();
    let bad_clients = bad_clients();
    let (first, second) = bad_clients.split_at(bad_clients.len() / 2);
    let (left, right) = all.split_at(all.len() / 2);
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let walks = [(left, first), (right, second)];
        let judged = &judged;
        let walks = walks.map(|(bases, bad)| scope.spawn(move || [accused(bases), passed(bad, judged)].concat()));
        walks.into_iter().for_each(|walk| wrong.extend(walk.join().expect("no panic")));
    });
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
