//! How the work of the judges grows with the length of a trace.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use rehearse_protocol::{Closed, Direction, Era, Event, EventKind, Frame, Trace, Transport, Version};
use serde_json::{Value, json};

use crate::{Evidence, Facts, Role, checks_of, connection::LOOKED_AT};

/// Makes a trace of calls of a tool.
#[derive(Default)]
struct Calls {
    trace: Trace,
    at: Duration,
    has_exchanges: bool,
    exchanges: u32,
}

impl Calls {
    fn push(&mut self, exchange: Option<u32>, kind: EventKind) {
        self.at += Duration::from_millis(1);
        self.trace.push_event(Event { at: self.at, exchange, kind });
    }

    fn frame(&mut self, exchange: Option<u32>, direction: Direction, message: &Value) {
        let frame = Frame::new(direction, self.at, message.to_string().into());
        self.push(exchange, EventKind::Frame(frame));
    }

    /// A message of the client with what comes back.
    fn exchange(&mut self, sent: &Value, received: &[Value]) {
        let exchange = self.has_exchanges.then_some(self.exchanges);
        self.exchanges += 1;
        if exchange.is_some() {
            let (method, target, headers) = (Method::POST, "/mcp".to_owned(), HeaderMap::new());
            self.push(exchange, EventKind::HttpRequest { method, target, headers });
        }
        self.frame(exchange, Direction::ClientToServer, sent);
        if exchange.is_some() {
            let status = if received.is_empty() { StatusCode::ACCEPTED } else { StatusCode::OK };
            let mut headers = HeaderMap::new();
            headers.insert("content-type", http::HeaderValue::from_static("text/event-stream"));
            self.push(exchange, EventKind::HttpResponse { status, headers });
        }
        received.iter().for_each(|message| self.frame(exchange, Direction::ServerToClient, message));
        if exchange.is_some() {
            self.push(exchange, EventKind::HttpEnd { is_whole: true });
        }
    }
}

fn trace(version: Version, transport: Transport, calls: usize) -> Trace {
    let mut made = Calls { has_exchanges: transport == Transport::Http, ..Calls::default() };
    let info = json!({ "name": "a", "version": "1" });
    let capabilities = json!({ "tools": {}, "logging": {} });
    let with_meta = |mut params: Value| {
        if version.era() == Era::Modern {
            let key = |name: &str| format!("io.modelcontextprotocol/{name}");
            params["_meta"][key("protocolVersion")] = json!(version);
            params["_meta"][key("clientInfo")] = info.clone();
            params["_meta"][key("clientCapabilities")] = json!({});
        }
        params
    };
    let request = |id: usize, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": with_meta(params) });
    let answer = |id: usize, mut result: Value| {
        if version.era() == Era::Modern {
            result["resultType"] = json!("complete");
        }
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    };
    if version.era() == Era::Modern {
        let result = json!({ "supportedVersions": [version], "capabilities": capabilities });
        made.exchange(&request(0, "server/discover", json!({})), &[answer(0, result)]);
    } else {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        let result = json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": info });
        made.exchange(&request(0, "initialize", params), &[answer(0, result)]);
        made.exchange(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), &[]);
    }
    let tool = json!({ "name": "a", "inputSchema": { "type": "object" }, "outputSchema": { "type": "object" } });
    made.exchange(&request(1, "tools/list", json!({})), &[answer(1, json!({ "tools": [tool] }))]);
    for id in 2..calls {
        let mut params = json!({ "name": "a", "arguments": {} });
        if id % 2 == 0 {
            params["_meta"] = json!({ "progressToken": id });
        }
        let progress = json!({ "progressToken": id, "progress": 1 });
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
        let log = json!({ "level": "info", "data": 1 });
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log });
        let result = answer(id, json!({ "content": [], "structuredContent": {} }));
        made.exchange(&request(id, "tools/call", params), &[progress, log, result]);
        if id % 10 == 0 {
            let params = json!({ "requestId": id });
            let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            made.exchange(&cancelled, &[]);
        }
    }
    made.push(None, EventKind::Closed(Closed::by_client("the end")));
    made.trace
}

#[test]
fn a_judge_looks_at_each_call_a_few_times_however_long_the_trace_is() {
    let looked_at = |version, transport, role, calls| -> Vec<usize> {
        let trace = trace(version, transport, calls);
        let evidence = Evidence::new(&[&trace], version, transport, Facts { role, ..Facts::default() });
        let judged = checks_of(role).map(|check| {
            LOOKED_AT.set(0);
            check.judge(&evidence);
            LOOKED_AT.get()
        });
        judged.collect()
    };
    for role in [Role::Server, Role::Client] {
        for version in [Version::V2025_11_25, Version::V2026_07_28] {
            for transport in [Transport::Stdio, Transport::Http] {
                let (short, long) =
                    (looked_at(version, transport, role, 200), looked_at(version, transport, role, 800));
                for ((check, short), long) in checks_of(role).zip(short).zip(long) {
                    // Four times the calls, and not sixteen times the work.
                    let is_linear = long < 6 * short.max(200);
                    assert!(is_linear, "{}: {short}, then {long} ({version} {transport})", check.id);
                }
            }
        }
    }
}
