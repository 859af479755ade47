//! Serving in real time.

mod auth;
mod client;
mod issuer;
mod journal;
mod network;
mod pipe;
mod recorder;
mod sessions;
mod stateless;
mod tasks;

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio_tungstenite::tungstenite::{Message as WsMessage, client::IntoClientRequest};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{engine::Engine, journal::Journal, script::Script};
use rehearse_document::Source;
use rehearse_protocol::{
    Transport,
    sse::{Decoder, Event},
};

const SCRIPT: &str = r#"
server: { name: t }
tools:
  - { name: echo, inputSchema: { type: object }, reply: { text: "{{ args.text }}" } }
  - { name: later, delay: 30ms, reply: later }
  - { name: never, delay: 60s, reply: never }
  - name: steps
    steps: [{ progress: { progress: 1 } }, { wait: 5ms }, { reply: done }]
  - { name: dies, steps: [{ wait: 1ms }, { exit: 3 }] }
"#;

const PATIENCE: Duration = Duration::from_secs(20);

fn engine(script: &str) -> Arc<Engine> {
    let script = Script::parse(&Source::new("s", script)).unwrap_or_else(|error| panic!("{error}"));
    Engine::new(script, 1, Journal::default())
}

async fn idle(engine: &Engine) {
    let idle = async {
        while engine.in_flight() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, idle).await.expect("every answer has stopped");
}

/// Resolves when an answer is in progress.
async fn busy(engine: &Engine) {
    while engine.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
}

fn initialize(version: &str) -> Json {
    let params =
        json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn call(id: i64, tool: &str) -> Json {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": { "text": "hi" }, "_meta": { "progressToken": id } } })
}

fn modern(mut request: Json) -> Json {
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request
}

fn cancel(id: i64) -> Json {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}
