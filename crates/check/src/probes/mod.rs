//! What is sent, one file for each probe. A probe sends, records, and judges nothing.

use std::collections::BTreeSet;

use futures_util::future::{BoxFuture, join_all, join3};
use rehearse_conformance::{CaseGroup, Check};
use rehearse_protocol::{Trace, names::SKILLS_EXTENSION};

use crate::{
    CheckOptions,
    connection::ProbeConnection,
    effects,
    options::selects,
    prober::{Extent, Prober},
};

mod apps;
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

/// A probe with connections of its own.
struct OwnProbe {
    name: &'static str,
    /// The checks whose judges look at what it sends, by the beginnings of their ids.
    feeds: &'static [&'static str],
    /// Sends what it has to send to this server, and returns the traces.
    send: for<'a> fn(&'a Prober<'a>) -> BoxFuture<'a, Vec<Trace>>,
}

/// Every probe with connections of its own. They run at the same time.
const ALONE: &[OwnProbe] = &[
    OwnProbe {
        name: "malformed",
        feeds: &[
            "rpc",
            "io",
            "lsse",
            "page",
            "hdr.error",
            "life.init",
            "life.order",
            "discover.state",
            "http.post",
            "http.stream",
        ],
        send: |prober| Box::pin(case_groups::malformed(prober)),
    },
    OwnProbe {
        name: "fresh",
        feeds: &[
            "rpc.batch",
            "rpc.notify",
            "life",
            "discover",
            "era",
            "page",
            "http.origin",
            "http.session",
            "http.version",
        ],
        send: |prober| Box::pin(case_groups::fresh(prober)),
    },
    OwnProbe { name: "tasks", feeds: TASKS, send: |prober| Box::pin(tasks::tasks(prober)) },
    OwnProbe {
        name: "session",
        feeds: &["http.session", "http.origin", "http.cors"],
        send: |prober| Box::pin(session::session(prober)),
    },
    OwnProbe { name: "asking", feeds: ASKING, send: |prober| Box::pin(asking::asking(prober)) },
    OwnProbe {
        name: "streams",
        feeds: &["http.endpoint", "http.origin", "http.post", "http.session", "http.stream", "rpc.id"],
        send: |prober| Box::pin(streams::streams(prober)),
    },
    OwnProbe { name: "sse", feeds: &["lsse"], send: |prober| Box::pin(sse_ws::sse(prober)) },
    OwnProbe { name: "ws", feeds: &["ws"], send: |prober| Box::pin(sse_ws::ws(prober)) },
    OwnProbe { name: "auth", feeds: &["auth"], send: |prober| Box::pin(auth::auth(prober)) },
    OwnProbe { name: "idle", feeds: effects::FEEDS, send: |prober| Box::pin(effects::idle(prober)) },
    OwnProbe { name: "era", feeds: &["era", "discover.requests"], send: |prober| Box::pin(era::era(prober)) },
];

/// A probe that needs no more than a session.
struct SessionProbe {
    name: &'static str,
    /// As those of an [`OwnProbe`].
    feeds: &'static [&'static str],
    is_needed: fn(&Prober<'_>) -> bool,
    send: for<'a> fn(&'a Prober<'a>, &'a mut ProbeConnection) -> BoxFuture<'a, ()>,
}

const ASKING: &[&str] = &[
    "apps",
    "ask",
    "mrtr",
    "life.init",
    "life.order",
    "prompts.get",
    "res.read",
    "tools.call",
    "schema.result",
    "sub.scope",
    "sub.tag",
    "tasks",
    "taskx",
    "cache.input-required",
    "discover.state",
    "discover.capability",
    "http.stream",
];
const TASKS: &[&str] =
    &["ask", "mrtr", "tasks", "taskx", "tools.call", "schema.result", "sub", "discover.capability", "http.stream"];

/// Every probe that can share a session with others, in the order in which they share one.
const IN_SESSION: &[SessionProbe] = &[
    SessionProbe {
        name: "calls",
        feeds: &["ask", "cancel", "mrtr", "sub.scope", "tools.call", "rpc.id", "schema.result", "http.stream"],
        is_needed: |prober| prober.extent != Extent::Brief,
        send: |prober, connection| Box::pin(calls::calls(prober, connection)),
    },
    SessionProbe {
        name: "changes",
        feeds: &[
            "res.sub",
            "res.changed",
            "tools.changed",
            "prompts.changed",
            "tools.call",
            "schema.result",
            "http.stream",
        ],
        is_needed: |prober| prober.extent != Extent::Brief && changes::announces_changes(&prober.material),
        send: |prober, connection| Box::pin(changes::changes(prober, connection)),
    },
    SessionProbe {
        name: "skills",
        feeds: &["skills", "res.read"],
        is_needed: |prober| prober.material.is_modern() && prober.material.has_extension(SKILLS_EXTENSION),
        send: |prober, connection| Box::pin(skills::skills(prober, connection)),
    },
    SessionProbe {
        name: "negative",
        feeds: &[
            "rpc",
            "life",
            "discover",
            "ping",
            "page",
            "tools.call",
            "res.read",
            "prompts.get",
            "comp",
            "log",
            "progress",
            "cancel",
            "sub",
            "http",
            "hdr",
            "tasks",
            "taskx",
            "skills",
            "safety.env",
            "cache",
            "schema.result",
        ],
        is_needed: |prober| prober.cases_on(CaseGroup::Negative).next().is_some(),
        send: |prober, connection| Box::pin(case_groups::negative(prober, connection)),
    },
    SessionProbe {
        name: "batches",
        feeds: &["rpc.batch"],
        is_needed: |prober| prober.extent == Extent::Brief && prober.starts_processes(),
        send: |prober, connection| Box::pin(case_groups::batches(prober, connection)),
    },
    SessionProbe {
        name: "listen",
        feeds: &["sub", "res.changed", "tools.changed", "prompts.changed", "discover.state"],
        is_needed: |prober| prober.material.is_modern(),
        send: |prober, connection| Box::pin(listen::listen(prober, connection)),
    },
    SessionProbe {
        name: "asking",
        feeds: ASKING,
        is_needed: |prober| asking::shares_session(prober),
        send: |prober, connection| Box::pin(async { drop(Box::pin(asking::ask(prober, connection)).await) }),
    },
    SessionProbe {
        name: "tasks",
        feeds: TASKS,
        is_needed: |prober| asking::shares_session(prober) && tasks::has_tasks(prober),
        send: |prober, connection| Box::pin(tasks::follow_tasks(prober, connection)),
    },
];

/// The checks whose judges look at calls of tools.
const CALLED: &[&str] = &[
    "apps.result",
    "ask",
    "mrtr",
    "cancel",
    "sub",
    "tasks",
    "taskx",
    "tools.call",
    "tools.changed",
    "res.sub",
    "res.changed",
    "prompts.changed",
    "auth.scope",
    "discover.state",
    "discover.capability",
    "rpc.id",
    "schema.result",
    "http.stream",
    "hdr.name",
    "safety.env",
    "safety.text",
];
/// The areas whose checks look at certain methods or cases. Any message can violate another check that needs no probe.
const CERTAIN: &[&str] = &[
    "apps",
    "tools",
    "res",
    "prompts",
    "comp",
    "page",
    "ask",
    "mrtr",
    "sub",
    "tasks",
    "taskx",
    "skills",
    "safety",
    "lsse",
    "ws",
    "schema.result",
];

/// Whether a check looks at what feeds these.
fn is_fed(check: &Check, feeds: &[&str]) -> bool {
    let is_one_of = |patterns: &[&str]| patterns.iter().any(|pattern| selects(pattern, &check.id));
    is_one_of(feeds) || (check.is_passive() && !is_one_of(CERTAIN))
}

/// Whether one of the selected checks looks at what feeds these.
fn is_wanted(options: &CheckOptions, feeds: &[&str]) -> bool {
    options.checks.is_empty() || options.selected().any(|check| is_fed(check, feeds))
}

/// Whether one of the selected checks looks at calls of tools.
pub(crate) fn wants_calls(options: &CheckOptions) -> bool {
    options.checks.is_empty() || options.selected().any(calls_tools)
}

fn calls_tools(check: &Check) -> bool {
    check.needs.as_deref() == Some("tool") || is_fed(check, CALLED)
}

/// What is sent for a check besides the normal work: the names of probes, and `tools` if tools are called.
pub fn probes_of(check: &Check) -> BTreeSet<&'static str> {
    let own = ALONE.iter().map(|probe| (probe.name, probe.feeds));
    let shared = IN_SESSION.iter().map(|probe| (probe.name, probe.feeds));
    let probes = own.chain(shared).filter(|(_, feeds)| is_fed(check, feeds)).map(|(name, _)| name);
    probes.chain(calls_tools(check).then_some("tools")).collect()
}

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
        let wanted = ALONE.iter().filter(|probe| is_wanted(prober.options, probe.feeds));
        match (prober.extent, prober.starts_processes()) {
            (Extent::Brief, true) => Vec::new(),
            (Extent::Brief, false) => {
                let cheap = wanted.filter(|probe| ["fresh", "malformed"].contains(&probe.name));
                join_all(cheap.map(|probe| (probe.send)(prober))).await.into_iter().flatten().collect()
            }
            _ => join_all(wanted.map(|probe| (probe.send)(prober))).await.into_iter().flatten().collect(),
        }
    };
    let (main, alone, others) = join3(Box::pin(in_session), Box::pin(alone), Box::pin(at_once(prober))).await;
    main.into_iter().chain(alone).chain(others).collect()
}

/// The probes that need a session, and are needed.
fn in_session<'a>(prober: &'a Prober<'_>) -> impl Iterator<Item = &'static SessionProbe> + 'a {
    IN_SESSION.iter().filter(|probe| (probe.is_needed)(prober) && is_wanted(prober.options, probe.feeds))
}

/// Runs the probes that need a session at the same time, each in a session of its own.
async fn at_once(prober: &Prober<'_>) -> Vec<Trace> {
    if prober.starts_processes() {
        return Vec::new();
    }
    let alone = in_session(prober).map(|probe| async {
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
    for probe in in_session(prober) {
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
