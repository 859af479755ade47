//! What is sent, one file for each probe. A probe sends, records, and judges nothing.

use futures_util::future::{BoxFuture, join, join_all, join3};
use rehearse_conformance::CaseGroup;
use rehearse_protocol::{Trace, names::SKILLS_EXTENSION};

use crate::{
    connection::ProbeConnection,
    prober::{Extent, Prober},
};

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

/// Sends what a probe has to send to this server on connections of its own, and returns their traces.
type Probe = for<'a> fn(&'a Prober<'a>) -> BoxFuture<'a, Vec<Trace>>;

/// Every probe with connections of its own. They run at the same time.
const ALONE: &[Probe] = &[
    |prober| Box::pin(case_groups::malformed(prober)),
    |prober| Box::pin(case_groups::fresh(prober)),
    |prober| Box::pin(tasks::tasks(prober)),
    |prober| Box::pin(session::session(prober)),
    |prober| Box::pin(asking::asking(prober)),
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
    SessionProbe {
        is_needed: |prober| prober.extent != Extent::Brief,
        send: |prober, connection| Box::pin(calls::calls(prober, connection)),
    },
    SessionProbe {
        is_needed: |prober| prober.extent != Extent::Brief && changes::announces_changes(&prober.material),
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
        is_needed: |prober| prober.extent == Extent::Brief && prober.starts_processes(),
        send: |prober, connection| Box::pin(case_groups::batches(prober, connection)),
    },
    SessionProbe {
        is_needed: |prober| prober.material.is_modern(),
        send: |prober, connection| Box::pin(listen::listen(prober, connection)),
    },
    SessionProbe {
        is_needed: |prober| asking::shares_session(prober),
        send: |prober, connection| Box::pin(async { drop(Box::pin(asking::ask(prober, connection)).await) }),
    },
    SessionProbe {
        is_needed: |prober| asking::shares_session(prober) && tasks::has_tasks(prober),
        send: |prober, connection| Box::pin(tasks::follow_tasks(prober, connection)),
    },
];

/// Runs every probe; the first connection is the one on which the lists were read.
pub(crate) async fn all(prober: &Prober<'_>, connection: ProbeConnection) -> Vec<Trace> {
    let in_session = async {
        let connection = main_connection::main_connection(prober, connection).await;
        match prober.starts_processes() {
            true => Box::pin(one_after_another(prober, connection)).await,
            false => vec![connection.close().await],
        }
    };
    let alone = async {
        match (prober.extent, prober.starts_processes()) {
            (Extent::Brief, true) => Vec::new(),
            (Extent::Brief, false) => {
                let (fresh, malformed) =
                    join(Box::pin(case_groups::fresh(prober)), Box::pin(case_groups::malformed(prober))).await;
                fresh.into_iter().chain(malformed).collect()
            }
            _ => join_all(ALONE.iter().map(|probe| probe(prober))).await.into_iter().flatten().collect(),
        }
    };
    let (main, alone, others) = join3(Box::pin(in_session), Box::pin(alone), Box::pin(at_once(prober))).await;
    main.into_iter().chain(alone).chain(others).collect()
}

/// Runs the probes that need a session at the same time, each in a session of its own.
async fn at_once(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.starts_processes() {
        return Vec::new();
    }
    let alone = IN_SESSION.iter().filter(|probe| (probe.is_needed)(prober)).map(|probe| async {
        let mut connection = prober.open_session().await?;
        (probe.send)(prober, &mut connection).await;
        Some(connection.close().await)
    });
    join_all(alone).await.into_iter().flatten().collect()
}

/// Runs the probes that need a session one after the other, because each session is a process. They use this one as long
/// as it lives.
async fn one_after_another(prober: &Prober<'_>, connection: ProbeConnection) -> Vec<Trace> {
    let mut traces = Vec::new();
    let mut shared = Some(connection);
    for probe in IN_SESSION.iter().filter(|probe| (probe.is_needed)(prober)) {
        if let Some(ended) = shared.take_if(|it| it.is_over()) {
            traces.push(ended.close().await);
        }
        let mut connection = match shared.take() {
            Some(connection) => connection,
            None => match prober.open_session().await {
                Some(connection) => connection,
                None => return traces,
            },
        };
        (probe.send)(prober, &mut connection).await;
        shared = Some(connection);
    }
    if let Some(connection) = shared {
        traces.push(connection.close().await);
    }
    traces
}
