//! A server at the other end of a pipe inside this program, fast or slow.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rehearse_mock::{engine::Engine, journal::Journal, script::Script, serve::PipeServer};
use rehearse_net::pipe::Address;
use rehearse_protocol::Transport;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    task::JoinHandle,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::delay::Slowness;

/// Serves a script. A slow server has a seed.
pub(crate) fn serve(script: &str, slow: Option<(Slowness, u64)>) -> (Address, JoinHandle<()>) {
    let source = rehearse_document::Source::new("script.yaml", script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = PipeServer::new(engine);
    let (address, mut listener) = rehearse_net::pipe::listen();
    let serving = tokio::spawn(async move {
        let mut slow = slow.map(|(slowness, seed)| (slowness, StdRng::seed_from_u64(seed)));
        let grace = Duration::from_secs(1);
        while let Some(stream) = listener.accept().await {
            let (server, (reader, writer)) = (server.clone(), tokio::io::split(stream));
            let Some((slowness, random)) = &mut slow else {
                tokio::spawn(async move {
                    server.serve(Transport::Memory, reader, writer, CancellationToken::new(), grace).await
                });
                continue;
            };
            let (outer, inner) = tokio::io::duplex(1 << 22);
            let (from, _) = tokio::io::split(inner);
            let (_, to) = tokio::io::split(outer);
            tokio::spawn(delay(from, writer, *slowness, StdRng::seed_from_u64(random.random())));
            tokio::spawn(
                async move { server.serve(Transport::Memory, reader, to, CancellationToken::new(), grace).await },
            );
        }
    });
    (address, serving)
}

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
