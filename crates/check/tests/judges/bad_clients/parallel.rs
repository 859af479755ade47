//! Six conformant clients at once on one server: none is accused of what another did.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use rehearse_conformance::{CheckVerdict, Facts, Recorded, Role, judge_recorded};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, ServerRecorder},
};
use rehearse_protocol::{Closed, Transport, Version};

use super::base::{EVERYTHING, LONG_PATIENCE, work};

const CLIENTS: usize = 6;

/// What clients of these versions are accused of.
async fn accused(transport: Transport, versions: &[Version]) -> Vec<String> {
    let source = rehearse_document::Source::new("everything", EVERYTHING);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let recorder = Arc::<ServerRecorder>::default();
    let listen = ListenOptions { recorder: Some(recorder.clone()), ..ListenOptions::default() };
    let server = MockServer::start(engine, listen).await.expect("starts");
    let clients = versions.iter().cycle().take(CLIENTS);
    join_all(clients.map(|version| work(&server, transport, *version, LONG_PATIENCE))).await;
    recorder.close(&Closed::by_client("the client has ended"));
    assert!(server.traces().len() >= CLIENTS, "{transport}: {}", server.traces().len());
    let traces = server.traces();
    server.stop(Duration::ZERO).await;
    let facts = Facts { role: Role::Client, is_local: true, ..Facts::default() };
    let recorded = traces.iter().map(|trace| Recorded { trace, asked: None });
    let judged = judge_recorded(recorded, transport, &facts).versions;
    let outcomes = judged.into_iter().flat_map(|it| it.outcomes);
    let bad = outcomes.filter(|(_, outcome)| outcome.verdict <= CheckVerdict::Warn);
    bad.map(|(check, it)| format!("{transport} {versions:?} {}: {:?}", check.id, it.judgement.violations)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_at_once_are_not_accused() {
    let mut wrong = Vec::new();
    for transport in [Transport::Http, Transport::Ws, Transport::Sse] {
        let all: Vec<_> = Version::ALL.into_iter().filter(|version| transport.carries(*version)).collect();
        for versions in all.iter().map(std::slice::from_ref).chain([&all[..]]) {
            wrong.extend(accused(transport, versions).await);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
