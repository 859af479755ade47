//! A server that does everything right, and slowly: it is never accused.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rehearse_check::{CheckOptions, check};
use rehearse_client::{ServerParams, Target, ToolPermission};
use rehearse_conformance::CheckVerdict;
use rehearse_mock::{engine::Engine, journal::Journal, script::Script, serve::PipeServer};
use rehearse_protocol::Transport;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::delay::{Slowness, seeds};

const SCRIPT: &str = r#"
tools:
  - { name: a, annotations: { readOnlyHint: true }, inputSchema: { type: object, properties: { x: { type: string } } }, reply: x }
resources: [{ uri: "file:///srv/a.txt", name: a, reply: x }]
prompts: [{ name: p, arguments: [{ name: x }], messages: [{ role: user, content: x }] }]
"#;

/// Copies lines, and delays them.
async fn delay(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, slowness: Slowness, mut random: StdRng) {
    let mut lines = BufReader::new(from).split(b'\n');
    let mut is_first = true;
    while let Ok(Some(mut line)) = lines.next_segment().await {
        sleep(slowness.delay(is_first, &mut random)).await;
        is_first = false;
        line.push(b'\n');
        if to.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// The checks that accuse the slow twin of a conformant server.
async fn accused(slowness: Slowness, seed: u64) -> Vec<String> {
    let source = rehearse_document::Source::new("script.yaml", SCRIPT);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = PipeServer::new(engine);
    let (address, mut listener) = rehearse_net::pipe::listen();
    let serving = tokio::spawn(async move {
        let mut random = StdRng::seed_from_u64(seed);
        while let Some(stream) = listener.accept().await {
            let (server, (reader, writer)) = (server.clone(), tokio::io::split(stream));
            let (outer, inner) = tokio::io::duplex(1 << 22);
            let (from, _) = tokio::io::split(inner);
            let (_, to) = tokio::io::split(outer);
            tokio::spawn(delay(from, writer, slowness, StdRng::seed_from_u64(random.random())));
            let grace = Duration::from_secs(1);
            tokio::spawn(
                async move { server.serve(Transport::Memory, reader, to, CancellationToken::new(), grace).await },
            );
        }
    });
    let tools = ToolPermission { allowed: vec!["*".to_owned()], ..ToolPermission::default() };
    let (budget, varied_prompts) = (Duration::from_mins(10), vec!["*".to_owned()]);
    let options = CheckOptions { tools, varied_prompts, seed, budget, ..CheckOptions::default() };
    let checked = check(&ServerParams::new("server", Target::Memory(address)), &options).await.checked;
    serving.abort();
    let mut accused = Vec::new();
    for version in &checked.versions {
        let violated = version.checks.iter().filter(|check| check.verdict <= CheckVerdict::Warn);
        accused.extend(violated.map(|check| {
            format!(
                "{slowness:?} {seed} {}: {} {:?}",
                version.version,
                check.id,
                check.violations.first().map(|it| it.found.clone())
            )
        }));
    }
    accused
}

#[test]
fn a_slow_server_is_never_accused() {
    let mut wrong = Vec::new();
    for seed in 0..seeds(8) {
        for slowness in Slowness::ALL {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            wrong.extend(runtime.expect("a runtime").block_on(accused(slowness, seed)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
