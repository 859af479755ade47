//! What holds for every judge and every trace.

use std::{sync::OnceLock, time::Duration};

use bytes::Bytes;
use proptest::prelude::*;
use rehearse_check::{CheckOptions, VersionTraces, check};
use rehearse_client::{Endpoint, ServerParams, Target, ToolPermission};
use rehearse_conformance::{CheckVerdict, Evidence, Facts, judge_all};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Event, EventKind, Frame, Trace, Transport, Version};

/// A server that violates rules of many areas.
const SCRIPT: &str = r#"
tools: [{ name: a, annotations: { readOnlyHint: true }, reply: x }]
resources: [{ uri: "file:///srv/a.txt", name: a, reply: x }]
prompts: [{ name: p, arguments: [{ name: x }], messages: [{ role: user, content: x }] }]
methods:
  - { method: tools/list, reply: { result: { tools: [{ name: a/b }, { name: a/b }], nextCursor: 5 } } }
  - { method: resources/read, reply: { raw: '{"jsonrpc":"1.0","id":"other","result":{}}' } }
"#;

/// The runs over HTTP and WebSocket.
fn runs() -> &'static [(Transport, VersionTraces)] {
    static RUNS: OnceLock<Vec<(Transport, VersionTraces)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let script = Script::parse(&rehearse_document::Source::new("script.yaml", SCRIPT)).expect("a valid script");
            let engine = Engine::new(script, 1, Journal::default());
            let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
            let tools = ToolPermission { allowed: vec!["*".to_owned()], ..ToolPermission::default() };
            // Some of its answers never come.
            let [grace, request_timeout] = [50, 2000].map(Duration::from_millis);
            let varied_prompts = vec!["*".to_owned()];
            let options = CheckOptions { grace, request_timeout, tools, varied_prompts, ..CheckOptions::default() };
            let mut runs = Vec::new();
            for transport in [Transport::Http, Transport::Ws] {
                let at = Endpoint { url: server.url(transport).expect("a URL"), headers: Vec::new() };
                let target = if transport == Transport::Http { Target::Http(at) } else { Target::Ws(at) };
                let run = check(&ServerParams::new("server", target), &options).await;
                runs.extend(run.traces.into_iter().map(|run| (transport, run)));
            }
            runs
        })
    })
}

fn verdicts(traces: &[Trace], version: Version, transport: Transport) -> Vec<CheckVerdict> {
    let traces: Vec<_> = traces.iter().collect();
    let facts = Facts { is_local: true, ..Facts::default() };
    judge_all(&Evidence::new(&traces, version, transport, facts))
        .into_iter()
        .map(|(_, outcome)| outcome.verdict)
        .collect()
}

fn prefix(trace: &Trace, len: usize) -> Trace {
    let mut cut = Trace::default();
    trace.events().take(len).for_each(|event| cut.push_event(event.clone()));
    cut
}

/// A trace whose events are mixed, dropped and overwritten.
fn damaged(trace: &Trace, damage: &[(prop::sample::Index, u8, Vec<u8>)]) -> Trace {
    let mut events: Vec<_> = trace.events().cloned().collect();
    for (at, what, bytes) in damage {
        if events.is_empty() {
            break;
        }
        let at = at.index(events.len());
        match what % 4 {
            0 => drop(events.remove(at)),
            1 => events.swap(at, 0),
            2 => events.push(events[at].clone()),
            _ => {
                if let EventKind::Frame(frame) = &events[at].kind {
                    let keep = frame.bytes.len() * usize::from(*what) / 255;
                    let bytes: Bytes = [&frame.bytes[..keep], bytes, &frame.bytes[keep..]].concat().into();
                    let kind = EventKind::Frame(Frame::new(frame.direction, frame.at, bytes));
                    events[at] = Event { kind, ..events[at].clone() };
                }
            }
        }
    }
    let mut damaged = Trace::default();
    events.into_iter().for_each(|event| damaged.push_event(event));
    damaged
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_check_that_fails_never_passes_on_a_part_of_the_trace(run in any::<prop::sample::Index>(), at in any::<prop::sample::Index>()) {
        let (transport, run) = run.get(runs());
        let whole = verdicts(&run.traces, run.version, *transport);
        let number = at.index(run.traces.len());
        let mut traces = run.traces.clone();
        let len = traces[number].events().count();
        traces[number] = prefix(&traces[number], at.index(len));
        let cut = verdicts(&traces, run.version, *transport);
        for ((whole, cut), check) in whole.iter().zip(&cut).zip(rehearse_conformance::checks_of(rehearse_conformance::Role::Server)) {
            prop_assert!(*whole != CheckVerdict::Fail || *cut != CheckVerdict::Pass, "{}", check.id);
        }
    }

    #[test]
    fn no_judge_panics_on_damaged_traces(
        run in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..4)), 1..20),
        version in prop::sample::select(Version::ALL.to_vec()),
        transport in prop::sample::select(vec![Transport::Stdio, Transport::Http, Transport::Sse, Transport::Ws]),
    ) {
        let (_, run) = run.get(runs());
        let start = damage[0].0.index(run.traces.len());
        let traces: Vec<_> = run.traces[start..].iter().take(2).map(|trace| damaged(trace, &damage)).collect();
        verdicts(&traces, version, transport);
    }
}

#[test]
fn the_server_of_these_tests_violates_rules() {
    let failed = |(transport, run): &(Transport, VersionTraces)| {
        verdicts(&run.traces, run.version, *transport).contains(&CheckVerdict::Fail)
    };
    assert!(runs().iter().any(failed));
}
