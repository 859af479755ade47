//! Mistakes of clients, and the answer that the specification requires: an error, a status, or none.
//!
//! Each row says where the specification demands it, or that it leaves the answer open: single frames in `frames.txt`. After
//! every row a normal request is answered normally.

mod headers;
mod http;
mod large;
mod legacy;
mod line;
mod modern;
mod rounds;
mod sessions;

use std::{sync::Arc, time::Duration};

use crate::engine::Engine;
use crate::journal::Journal;
use crate::script::Script;
use crate::serve::ListenOptions;
use crate::serve::MockServer;
use rehearse_document::Source;
use rehearse_testing::table;
use serde_json::{Value as Json, json};

use self::http::Reply;

const PATIENCE: Duration = Duration::from_secs(60);
const META: &str = "io.modelcontextprotocol/";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
const IS_JSON: (&str, &str) = ("content-type", "application/json");

const SCRIPT: &str = r#"
server: { name: t }
pageSize: 2
tools:
  - name: echo
    inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }
    reply: { text: "{{ args.text | length }}" }
  - { name: plain, reply: x }
  - name: ask
    steps:
      - elicit: { as: guest, message: Who?, requestedSchema: { type: object, properties: { name: { type: string } }, required: [name] } }
      - reply: { text: "{{ guest.action }} {{ (guest.content | default({})).name | default('') }}" }
  - { name: ask_again, steps: [{ elicit: { as: guest, message: Who?, requestedSchema: { type: object } } }, { reply: x }] }
  - { name: sample, steps: [{ sample: { messages: [] } }, { reply: x }] }
  - { name: task, steps: [{ task: { required: true } }, { reply: done }] }
  - { name: changes, steps: [{ disable: { prompt: gone } }, { reply: x }] }
  - { name: updates, steps: [{ notify: { method: notifications/resources/updated, params: { uri: 'file:///a' } } }, { reply: x }] }
  - { name: late, delay: 20ms, reply: late }
  - { name: reports, steps: [{ log: { level: error, data: l } }, { progress: { progress: 1 } }, { reply: x }] }
resources: [{ uri: "file:///a", text: a }]
resourceTemplates: [{ uriTemplate: "item:///{id}", text: "{{ args.id }}" }]
prompts:
  - { name: greet, arguments: [{ name: who, required: true }], messages: [{ role: user, content: "Hello {{ args.who }}" }] }
  - { name: gone }
completions: [{ prompt: greet, argument: who, values: [Ada] }]
"#;

fn engine(script: &str) -> Arc<Engine> {
    let script = Script::parse(&Source::new("s", script)).unwrap_or_else(|error| panic!("{error}"));
    Engine::new(script, 1, Journal::default())
}

async fn serve(engine: &Arc<Engine>) -> MockServer {
    MockServer::start(engine.clone(), ListenOptions::default()).await.expect("a free port")
}

/// A legacy request.
fn request(id: impl Into<Json>, method: &str, params: Json) -> Json {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn initialize(version: &str, capabilities: &Json) -> Json {
    let client = json!({ "name": "c", "version": "1" });
    request(0, "initialize", json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client }))
}

/// Ends the handshake.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A modern request of a client that has everything.
fn modern(id: impl Into<Json>, method: &str, mut params: Json) -> Json {
    let capabilities = json!({ "elicitation": {}, "extensions": { TASKS: {} } });
    params["_meta"][format!("{META}protocolVersion")] = "2026-07-28".into();
    params["_meta"][format!("{META}clientCapabilities")] = capabilities;
    request(id, method, params)
}

/// The expected answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// An error with the id of the request.
    Error(i64),
    /// An error without an id.
    Nameless(i64),
    /// A result that is not an error of a tool.
    Result,
    /// A result that is an error of a tool.
    ToolError,
    Nothing,
}

/// One mistake of a client.
struct Row {
    what: String,
    frame: Vec<u8>,
    expected: Expected,
    /// The status over HTTP.
    status: u16,
}

/// The table of single frames.
const FRAMES: &str = include_str!("frames.txt");

/// The rows below a heading of the table.
fn rows(heading: &str) -> Vec<Row> {
    table::rows(FRAMES, heading).into_iter().map(Row::new).collect()
}

impl Row {
    fn new([what, _section, answer, status, frame]: [String; 5]) -> Row {
        let code = |code: &str| code.parse().unwrap_or_else(|_| panic!("an answer: {what}"));
        let expected = match answer.strip_prefix("error ").map(|error| (error, error.strip_suffix(" without an id"))) {
            Some(("of the tool", _)) => Expected::ToolError,
            Some((_, Some(error))) => Expected::Nameless(code(error)),
            Some((error, None)) => Expected::Error(code(error)),
            None if answer == "result" => Expected::Result,
            None if answer == "nothing" => Expected::Nothing,
            None => panic!("an answer: {what}"),
        };
        let members = modern(1, "", json!({}))["params"]["_meta"].clone();
        let member = |name: &str| format!("\"{META}{name}\":{}", members[format!("{META}{name}")]);
        let frame = frame.replace("$VERSION", &member("protocolVersion"));
        let frame = frame.replace("$CAPABILITIES", &member("clientCapabilities"));
        Row { what, frame: frame.into(), expected, status: status.parse().expect("a status") }
    }

    fn check(&self, on: &str, frames: &[Json]) {
        let shown = || format!("{} on {on}: {}", self.what, Json::from(frames));
        if self.expected == Expected::Nothing {
            return assert!(frames.is_empty(), "{}", shown());
        }
        assert_eq!(frames.len(), 1, "{}", shown());
        let (frame, error, result) = (&frames[0], &frames[0]["error"], &frames[0]["result"]);
        let sent: Json = serde_json::from_slice(&self.frame).unwrap_or_default();
        let expected = match error["code"].as_i64() {
            Some(code) if frame.get("id").is_none() => Expected::Nameless(code),
            Some(code) => Expected::Error(code),
            None if result["isError"] == true => Expected::ToolError,
            None => Expected::Result,
        };
        assert_eq!(expected, self.expected, "{}", shown());
        assert!(frame.get("id").is_none() || sent.is_null() || frame["id"] == sent["id"], "{}", shown());
    }

    fn check_http(&self, reply: &Reply) {
        assert_eq!(reply.status, self.status, "{}: {reply:?}", self.what);
        assert_eq!(reply.is_empty, self.expected == Expected::Nothing, "{}: {reply:?}", self.what);
        self.check("http", &reply.frames);
    }
}
