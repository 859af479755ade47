//! Hubs of small scripted servers.

mod caching_session;
mod calls;
mod changes;
mod discovery;
mod item_registry;
mod routing;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};

use super::*;
use rehearse_client::{CallOptions, ServerParams, Target, ToolOutcome};
use rehearse_client_configs::policy::Duplicates;
use rehearse_client_configs::policy::{Naming, Unreachable};
use rehearse_net::pipe;
use rehearse_protocol::{List, Protocol, Version};
use rehearse_testing::{HttpServer, Seen, Server, greet, greet_http, in_memory, reply, result};

/// A legacy server with tools of these names, which answer with their own and the server's name.
fn server(name: &'static str, tools: &'static [&'static str]) -> Server {
    in_memory(move |message| answer(name, tools, message))
}

fn answer(name: &str, tools: &[&str], message: &Value) -> Vec<String> {
    match message["method"].as_str() {
        Some("tools/list") => vec![result(message, &json!({ "tools": definitions(tools) }).to_string())],
        Some("tools/call") => {
            let text = format!("{name}: {}", message["params"]["name"].as_str().unwrap_or_default());
            vec![result(message, &json!({ "content": [{ "type": "text", "text": text }] }).to_string())]
        }
        Some("ping") => vec![result(message, "{}")],
        _ => greet(message),
    }
}

fn definitions(tools: &[&str]) -> Vec<Value> {
    let definition = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": name.starts_with("read") } });
    tools.iter().map(definition).collect()
}

fn target(server: &Server) -> Target {
    Target::Memory(server.address.clone())
}

fn member(name: &str, target: &Target) -> HubServer {
    HubServer::new(ServerParams::new(name, target.clone()))
}

fn options() -> HubOptions {
    HubOptions { protocol: Protocol::Exact(Version::V2025_11_25), ..HubOptions::default() }
}

async fn text(hub: &Hub, name: &str) -> Result<String, CallError> {
    hub.call(name, None, CallOptions::default()).await.map(|outcome: ToolOutcome| outcome.text())
}

fn names(hub: &Hub) -> Vec<String> {
    hub.registry().tools().iter().map(|tool| format!("{}/{}", tool.server, tool.name)).collect()
}

fn states(hub: &Hub) -> Vec<ConnectionState> {
    hub.status().into_iter().map(|(_, status)| status.state).collect()
}

/// An address without a listener.
fn unreachable_target() -> Target {
    Target::Memory(pipe::listen().0)
}

/// A server that can change its list and hang up, and that sends its messages to the test.
fn changing() -> (Server, mpsc::UnboundedReceiver<String>) {
    let (seen, methods) = mpsc::unbounded_channel();
    let mut lists = 0;
    let server = in_memory(move |message| {
        let method = message["method"].as_str().unwrap_or_default();
        let _ = seen.send(method.to_owned());
        match (method, message["params"]["name"].as_str()) {
            ("initialize", _) => {
                let capabilities = json!({ "tools": { "listChanged": true } });
                let info = json!({ "name": "s", "version": "1" });
                let greeting =
                    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
                vec![result(message, &greeting.to_string())]
            }
            ("tools/list", _) => {
                lists += 1;
                let tools: &[&str] = if lists == 1 { &["change", "die", "never"] } else { &["other", "die", "never"] };
                vec![result(message, &json!({ "tools": definitions(tools) }).to_string())]
            }
            ("tools/call", Some("change")) => {
                let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned();
                [changed].into_iter().chain(answer("s", &[], message)).collect()
            }
            ("tools/call", Some("die")) => vec!["hang up".into()],
            ("tools/call", Some("never")) => Vec::new(),
            _ => answer("s", &[], message),
        }
    });
    (server, methods)
}

/// Waits for an event.
async fn wait_for(events: &mut tokio::sync::broadcast::Receiver<Event>, wanted: impl Fn(&Event) -> bool) {
    while !wanted(&events.recv().await.expect("an event")) {}
}
