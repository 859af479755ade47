//! What a client waits for: discovery (connect until the tools are listed) and calls, on every transport in both eras.

use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use mcp_rehearsal::{
    builtin_scripts::BUILTIN_SCRIPTS,
    client::{CallOptions, CommandSpec, Endpoint, ServerParams, Session, Target},
    mock::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer},
    },
    protocol::{Protocol, Transport, Version},
};
use serde_json::{Map, json};
use tokio::runtime::Runtime;

const TRANSPORTS: [Transport; 4] = [Transport::Stdio, Transport::Http, Transport::Sse, Transport::Ws];

fn target(server: &MockServer, transport: Transport) -> Target {
    let endpoint = Endpoint { url: server.url(transport).unwrap_or_default(), headers: Vec::new() };
    match transport {
        Transport::Http => Target::Http(endpoint),
        Transport::Sse => Target::Sse(endpoint),
        Transport::Ws => Target::Ws(endpoint),
        _ => Target::Stdio(CommandSpec {
            program: binary().display().to_string(),
            args: vec!["mock".into(), "basic".into()],
            ..CommandSpec::default()
        }),
    }
}

/// The binary `rehearse` of the same profile, which `make bench` builds.
fn binary() -> PathBuf {
    let benchmark = std::env::current_exe().expect("a path");
    let binary = benchmark.ancestors().nth(2).expect("target/PROFILE/deps/BENCHMARK").join("rehearse");
    assert!(binary.exists(), "{} does not exist: use `make bench`", binary.display());
    binary
}

fn cells() -> impl Iterator<Item = (Transport, Version)> {
    let versions = [Version::LATEST_LEGACY, Version::LATEST];
    let all = TRANSPORTS.into_iter().flat_map(move |transport| versions.map(|version| (transport, version)));
    all.filter(|(transport, version)| transport.carries(*version))
}

fn connect(runtime: &Runtime, config: &ServerParams, version: Version) -> Session {
    let session = runtime.block_on(Session::connect(config, Protocol::Exact(version)));
    session.unwrap_or_else(|error| panic!("{error}"))
}

fn transports(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let script = Script::load(Path::new("basic"), BUILTIN_SCRIPTS).unwrap_or_else(|error| panic!("{error}"));
    let engine = Engine::new(script, 1, Journal::default());
    let server = runtime.block_on(MockServer::start(engine, ListenOptions::default())).expect("a free port");
    let config = |transport| ServerParams::new("basic", target(&server, transport));

    let mut group = c.benchmark_group("discovery");
    group.sample_size(20);
    for (transport, version) in cells() {
        let config = config(transport);
        group.bench_function(format!("{transport}/{version}"), |b| {
            b.iter_custom(|iterations| {
                let mut total = std::time::Duration::ZERO;
                for _ in 0..iterations {
                    let started = std::time::Instant::now();
                    let session = connect(&runtime, &config, version);
                    let tools = runtime.block_on(session.list_tools(CallOptions::default())).expect("a list");
                    total += started.elapsed();
                    assert_eq!(tools.items.len(), 4);
                    runtime.block_on(session.close());
                }
                total
            });
        });
    }
    group.finish();

    let mut group = c.benchmark_group("call echo");
    for (transport, version) in cells() {
        let session = connect(&runtime, &config(transport), version);
        let arguments = Map::from_iter([("text".to_owned(), json!("hello"))]);
        group.bench_function(format!("{transport}/{version}"), |b| {
            b.iter(|| {
                let call = session.call_tool("echo", Some(arguments.clone()), CallOptions::default());
                runtime.block_on(call).expect("an answer")
            });
        });
        runtime.block_on(session.close());
    }
    group.finish();
}

criterion_group!(benches, transports);
criterion_main!(benches);
