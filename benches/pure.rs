//! The parts without IO: frames, the engine, snapshots' differences.

use std::{hint::black_box, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mcp_rehearsal::{
    builtin_scripts::BUILTIN_SCRIPTS,
    client_configs::lint,
    document::Source,
    mock::{
        engine::Engine,
        internals::{Decision, Event, Incoming, LegacySession},
        journal::Journal,
        script::{BuiltinScript, Script},
    },
    protocol::{Direction, EventKind, Frame, LineSplitter, Message, Trace, Transport, Version, sse},
};
use rehearse_conformance::{Evidence, Facts, judge_all};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const MODERN_CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("frames");
    group.throughput(Throughput::Bytes(CALL.len() as u64));
    group.bench_function("parse a message", |b| b.iter(|| Message::parse(black_box(CALL.as_bytes()))));
    let lines = format!("{CALL}\n").repeat(100);
    group.throughput(Throughput::Bytes(lines.len() as u64));
    group.bench_function("split 100 lines", |b| {
        b.iter(|| {
            let mut splitter = LineSplitter::default();
            splitter.buffer().extend_from_slice(lines.as_bytes());
            std::iter::from_fn(|| splitter.next_line()).count()
        });
    });
    let events = sse::Event::message(Bytes::from_static(CALL.as_bytes())).encode().repeat(100);
    group.throughput(Throughput::Bytes(events.len() as u64));
    group.bench_function("decode 100 events", |b| {
        b.iter(|| {
            let mut decoded = Vec::new();
            let _ = sse::Decoder::default().push(&events, &mut decoded);
            decoded
        });
    });
    group.finish();
}

fn answer(engine: &Arc<Engine>, session: &Arc<LegacySession>, bytes: &Bytes) -> Bytes {
    let incoming = Incoming {
        bytes,
        transport: Transport::Memory,
        at: Duration::ZERO,
        headers: None,
        token: None,
        session: None,
        faults: &[],
    };
    match engine.receive(session, incoming) {
        Decision::Respond(answer) => answer.frame,
        Decision::Exchange(mut exchange) => match exchange.next_event(Duration::ZERO) {
            Event::Finish(answer) => answer.frame,
            event => panic!("not answered at once: {event:?}"),
        },
        decision => panic!("not answered: {decision:?}"),
    }
}

fn engine(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    let BuiltinScript { name, text } = BUILTIN_SCRIPTS[0];
    let source = Source::new(name, text);
    group.bench_function("read the basic script", |b| b.iter(|| Script::parse(&source)));
    let script = Script::parse(&source).expect("the built-in script is valid");
    let engine = Engine::new(script, 1, Journal::default());
    let session = Arc::default();
    answer(&engine, &session, &Bytes::from_static(INITIALIZE.as_bytes()));
    for (name, frame) in [
        ("call echo, legacy", CALL),
        ("call echo, modern", MODERN_CALL),
        ("list tools", r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#),
    ] {
        let frame = Bytes::from_static(frame.as_bytes());
        group.bench_function(name, |b| b.iter(|| answer(&engine, &session, &frame)));
    }
    for (name, script) in [
        ("the only rule", rules(1)),
        ("the last of 1,000 rules", rules(1_000)),
        ("a result of 1 MB", format!("tools: [{{ name: echo, reply: {} }}]", "x".repeat(1 << 20))),
    ] {
        let script = Script::parse(&Source::new("script.yaml", script)).expect("a valid script");
        let engine = Engine::new(script, 1, Journal::default());
        let session = Arc::default();
        answer(&engine, &session, &Bytes::from_static(INITIALIZE.as_bytes()));
        let frame = Bytes::from_static(CALL.as_bytes());
        group.bench_function(name, |b| b.iter(|| answer(&engine, &session, &frame)));
    }
    group.finish();
}

/// A tool with so many rules, of which the last matches the call.
fn rules(count: usize) -> String {
    let rule = |number: usize| match number + 1 == count {
        true => "{ when: { args: { text: hello } }, reply: found }".to_owned(),
        false => format!("{{ when: {{ args: {{ text: other-{number} }} }}, reply: wrong }}"),
    };
    let rules: Vec<_> = (0..count).map(rule).collect();
    format!("tools: [{{ name: echo, rules: [{}] }}]", rules.join(", "))
}

/// A session of 100,000 frames, judged by every check.
fn judges(c: &mut Criterion) {
    let mut trace = Trace::default();
    let mut record = |number: u64, direction, text: String| {
        let (at, bytes) = (Duration::from_micros(number), Bytes::from(text));
        trace.push(at, EventKind::Frame(Frame::new(direction, at, bytes)));
    };
    let answer =
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    record(0, Direction::ClientToServer, INITIALIZE.to_owned());
    record(1, Direction::ServerToClient, format!(r#"{{"jsonrpc":"2.0","id":0,"result":{answer}}}"#));
    record(2, Direction::ClientToServer, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned());
    for id in 1..50_000 {
        record(2 * id + 1, Direction::ClientToServer, CALL.replacen(":7", &format!(":{id}"), 1));
        let result = r#"{"content":[{"type":"text","text":"hello"}]}"#;
        record(2 * id + 2, Direction::ServerToClient, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }
    let mut group = c.benchmark_group("judges");
    group.sample_size(10);
    group.bench_function("all checks over 100,000 frames", |b| {
        b.iter(|| {
            let evidence = Evidence::new(&[&trace], Version::LATEST_LEGACY, Transport::Stdio, Facts::default());
            judge_all(&evidence).len()
        });
    });
    group.finish();
}

fn snapshots(c: &mut Criterion) {
    let lines: Vec<_> = (0..2000).map(|line| format!("  \"member{line}\": {line},\n")).collect();
    let expected = lines.concat();
    let actual = expected.replace("\"member1000\": 1000", "\"member1000\": null");
    c.bench_function("snapshots/difference of 2000 lines", |b| {
        b.iter_batched(
            || (expected.clone(), actual.clone()),
            |(expected, actual)| similar::TextDiff::from_lines(&expected, &actual).unified_diff().to_string(),
            BatchSize::SmallInput,
        );
    });
}

fn configs(c: &mut Criterion) {
    let server = |n: usize| {
        let command =
            format!("\"command\": \"npx\", \"args\": [\"-y\", \"package-{n}\"], \"env\": {{\"A\": \"${{A}}\"}}");
        format!("    \"server-{n}\": {{ {command} }}")
    };
    let servers: Vec<_> = (0..10_000).map(server).collect();
    let text = format!("{{\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", servers.join(",\n"));
    let mut group = c.benchmark_group("configs");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("examine 10,000 servers", |b| {
        b.iter_batched(
            || Source::new(".mcp.json", text.as_str()),
            |source| lint(&source, Some(Path::new(".mcp.json")), None, None),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, frames, engine, judges, snapshots, configs);
criterion_main!(benches);
