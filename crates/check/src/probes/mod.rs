//! What is sent, one file for each probe. A probe sends, records, and judges nothing.

use futures_util::future::{BoxFuture, join, join_all};
use rehearse_conformance::CaseGroup;
use rehearse_protocol::{Trace, Transport, names::SKILLS_EXTENSION};

use crate::{connection::ProbeConnection, prober::Prober};

mod asking;
mod auth;
mod calls;
mod case_groups;
mod changes;
mod completions;
mod era;
mod handshake;
mod input;
mod listen;
mod main_connection;
mod session;
mod skills;
mod sse_ws;
mod streams;
mod tasks;

pub(crate) use auth::auth;
pub(crate) use main_connection::main_connection;

/// Sends what a probe has to send to this server on connections of its own, and returns their traces.
type Probe = for<'a> fn(&'a Prober<'a>) -> BoxFuture<'a, Vec<Trace>>;

/// Every probe with connections of its own. They run at the same time.
const ALONE: &[Probe] = &[
    |prober| Box::pin(case_groups::malformed(prober)),
    |prober| Box::pin(case_groups::fresh(prober)),
    |prober| Box::pin(handshake::handshake(prober)),
    |prober| Box::pin(tasks::tasks(prober)),
    |prober| Box::pin(session::session(prober)),
    |prober| Box::pin(asking::asking(prober)),
    |prober| Box::pin(input::input(prober)),
    |prober| Box::pin(streams::streams(prober)),
    |prober| Box::pin(sse_ws::sse(prober)),
    |prober| Box::pin(sse_ws::ws(prober)),
    |prober| Box::pin(auth::auth(prober)),
    |prober| Box::pin(era::era(prober)),
];

/// A probe that needs no more than a session.
struct SessionProbe {
    is_needed: fn(&Prober<'_>) -> bool,
    send: for<'a> fn(&'a Prober<'a>, &'a mut ProbeConnection) -> BoxFuture<'a, ()>,
}

/// Every probe that can share a session with others, in the order in which they share one.
const IN_SESSION: &[SessionProbe] = &[
    SessionProbe { is_needed: |_| true, send: |prober, connection| Box::pin(calls::calls(prober, connection)) },
    SessionProbe {
        is_needed: |prober| changes::announces_changes(&prober.material),
        send: |prober, connection| Box::pin(changes::changes(prober, connection)),
    },
    SessionProbe {
        is_needed: |prober| prober.material.is_modern() && prober.material.has_extension(SKILLS_EXTENSION),
        send: |prober, connection| Box::pin(skills::skills(prober, connection)),
    },
    SessionProbe {
        is_needed: |prober| prober.cases_on(CaseGroup::Negative).next().is_some(),
        send: |prober, connection| Box::pin(case_groups::negative(prober, connection)),
    },
    SessionProbe {
        is_needed: |prober| prober.material.is_modern(),
        send: |prober, connection| Box::pin(listen::listen(prober, connection)),
    },
];

/// Runs every probe except the main connection.
pub(crate) async fn others(prober: &Prober<'_>) -> Vec<Trace> {
    let alone = join_all(ALONE.iter().map(|probe| probe(prober)));
    let (alone, in_session) = join(alone, Box::pin(in_session(prober))).await;
    alone.into_iter().flatten().chain(in_session).collect()
}

/// Runs the probes that need a session: on stdio one after the other, because each session is a process; else at the
/// same time, each in a session of its own.
async fn in_session(prober: &Prober<'_>) -> Vec<Trace> {
    let probes = IN_SESSION.iter().filter(|probe| (probe.is_needed)(prober));
    if prober.transport() != Transport::Stdio {
        let alone = probes.map(|probe| async {
            let mut connection = prober.open_session().await?;
            (probe.send)(prober, &mut connection).await;
            Some(connection.close().await)
        });
        return join_all(alone).await.into_iter().flatten().collect();
    }
    let mut traces = Vec::new();
    let mut shared = None;
    for probe in probes {
        let mut connection = match shared.take() {
            Some(connection) => connection,
            None => match prober.open_session().await {
                Some(connection) => connection,
                None => return traces,
            },
        };
        (probe.send)(prober, &mut connection).await;
        match connection.is_over() {
            true => traces.push(connection.close().await),
            false => shared = Some(connection),
        }
    }
    if let Some(connection) = shared {
        traces.push(connection.close().await);
    }
    traces
}
