//! Mock servers for tests in Rust.
//!
//! ```
//! use rehearse_mock::{MockServer, Rule, Tool};
//! use rehearse_protocol::Transport;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = MockServer::builder()
//!     .tool(Tool::new("echo").reply("{{ args.text }}"))
//!     .tool(
//!         Tool::new("forecast")
//!             .rule(Rule::when_args(json!({ "city": "Atlantis" })).error("There is no such city."))
//!             .rule(Rule::always().reply(json!({ "structured": { "celsius": 21 } })).expect(..=2)),
//!     )
//!     .start()
//!     .await?;
//!
//! // Connect the client under test to one of these:
//! let url = server.url(Transport::Http); // http://127.0.0.1:PORT/mcp; also Sse and Ws
//! let pipe = server.connect(); // a pipe with the framing of stdio
//!
//! assert!(server.journal().is_empty(), "{:?}", server.journal());
//! # Ok(())
//! # } // Dropping the server verifies the expectations.
//! ```
//!
//! A builder writes a script and parses it: every key has the same meaning as in a file, strings are templates, and
//! `set` sets keys without a method of their own. Dropping a server from a builder verifies its expectations, and
//! panics if one is not met. [`MockServer::assert_verified`] does so earlier, and [`MockServerBuilder::verify_on_drop`]
//! turns the check off.

mod items;

use std::{fmt, io, sync::Arc};

pub use items::{Method, Prompt, Resource, ResourceTemplate, Rule, Tool};
use serde_json::{Map, Value as Json, json};

use super::{
    engine::{Engine, Verification},
    handler::Handler,
    journal::{Entry, Journal},
    script::{ItemKind, Script},
    serve::{ListenOptions, MockServer},
};
use rehearse_document::{Diagnostics, Source, parse_yaml};

/// Builds a mock server; see [`MockServer::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct MockServerBuilder {
    /// The initial script.
    script: Option<Arc<Source>>,
    members: Map<String, Json>,
    handlers: Vec<Handler>,
    seed: u64,
    verify_on_drop: bool,
    record_traces: bool,
}

/// The reason why a server cannot start. `Debug` is as readable as `Display`, for `unwrap`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The script of the builder has mistakes.
    #[error("{}", explain(.0))]
    Script(Diagnostics),
    /// No port of 127.0.0.1 can be bound.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(#[from] io::Error),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Every problem with its line, because there is no file.
fn explain(diagnostics: &Diagnostics) -> String {
    let explained = diagnostics.0.iter().map(|diagnostic| {
        let (line, _) = diagnostic.source.position(diagnostic.problem.span.start);
        let line = diagnostic.source.text.lines().nth(line - 1).unwrap_or_default().trim();
        let hint = diagnostic.problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{diagnostic}{hint}\n  in: {line}")
    });
    explained.collect::<Vec<_>>().join("\n")
}

impl MockServer {
    /// A builder for a server without items.
    pub fn builder() -> MockServerBuilder {
        MockServerBuilder {
            script: None,
            members: Map::new(),
            handlers: Vec::new(),
            seed: 1,
            verify_on_drop: true,
            record_traces: false,
        }
    }

    /// A builder that starts with a script, YAML or JSON, to which you can add items.
    pub fn from_script(text: impl Into<String>) -> MockServerBuilder {
        MockServerBuilder { script: Some(Source::new("<script>", text)), ..MockServer::builder() }
    }

    /// Every message so far, with the rule that answered it or the closest rule.
    pub fn journal(&self) -> Vec<Entry> {
        self.engine().journal().entries()
    }

    /// Checks the requests so far against the expectations. Unmet expectations are in the result.
    pub fn verify(&self) -> Verification {
        self.engine().verify()
    }

    /// # Panics
    /// An expectation is not met; the message names it and the closest requests.
    #[track_caller]
    pub fn assert_verified(&self) {
        let verification = self.verify();
        assert!(
            verification.holds(),
            "the mock server {} did not receive what it expects:\n{verification}",
            self.engine().name()
        );
    }

    /// Resets the server: clears the journal, traces, counters, state, tasks, added rules and list changes.
    pub fn reset(&self) {
        self.reset_traces();
        self.engine().reset(self.started().elapsed());
    }

    /// Adds a rule before those of a tool or another item of the running server. Returns the id for
    /// [`Engine::remove_rule`].
    ///
    /// # Errors
    /// There is no such item, or the rule has mistakes.
    pub fn add_rule(&self, kind: ItemKind, name: &str, rule: Rule) -> Result<String, StartError> {
        let text = yaml(&json!({ kind.key(): name, "rule": rule.0 }));
        self.engine().add_rule_with(&text, rule.1).map_err(StartError::Script)
    }
}

impl MockServerBuilder {
    /// Sets the name of the server.
    pub fn name(self, name: &str) -> Self {
        self.set("server", json!({ "name": name }))
    }

    /// Sets the supported protocol versions, one or a list; by default all versions.
    pub fn protocol(self, versions: impl Into<Json>) -> Self {
        self.set("protocol", versions)
    }

    /// Sets the initial state.
    pub fn state(self, values: impl Into<Json>) -> Self {
        self.set("state", values)
    }

    /// Adds a tool.
    pub fn tool(self, tool: Tool) -> Self {
        self.add(ItemKind::Tool, tool.0, tool.1)
    }

    /// Adds a resource.
    pub fn resource(self, resource: Resource) -> Self {
        self.add(ItemKind::Resource, resource.0, resource.1)
    }

    /// Adds a resource template.
    pub fn resource_template(self, template: ResourceTemplate) -> Self {
        self.add(ItemKind::ResourceTemplate, template.0, template.1)
    }

    /// Adds a prompt.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.add(ItemKind::Prompt, prompt.0, prompt.1)
    }

    /// Adds a method.
    pub fn method(self, method: Method) -> Self {
        self.add(ItemKind::Method, method.0, method.1)
    }

    /// Sets a key of the script without a method of its own, for example `unexpected` or `http`.
    pub fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.members.insert(key.into(), value.into());
        self
    }

    /// Sets the seed of all randomness; 1 by default.
    pub fn seed(self, seed: u64) -> Self {
        MockServerBuilder { seed, ..self }
    }

    /// Sets whether dropping the server panics if an expectation is not met, unless the thread already panics. The
    /// default is true.
    pub fn verify_on_drop(self, verify_on_drop: bool) -> Self {
        MockServerBuilder { verify_on_drop, ..self }
    }

    /// Records the trace of every connection, for [`MockServer::traces`] and `MockServer::violations`.
    pub fn record_traces(self) -> Self {
        MockServerBuilder { record_traces: true, ..self }
    }

    fn add(mut self, kind: ItemKind, item: Map<String, Json>, handlers: Vec<Handler>) -> Self {
        self.handlers.extend(handlers);
        let list = self.members.entry(kind.list_key()).or_insert_with(|| json!([]));
        if let Json::Array(items) = list {
            items.push(item.into());
        }
        self
    }

    /// The script as text: the initial script unchanged, if nothing was added to it.
    ///
    /// # Errors
    /// The initial script has a syntax error.
    fn source(&self) -> Result<Arc<Source>, Diagnostics> {
        let mut members = match &self.script {
            Some(script) if self.members.is_empty() => return Ok(script.clone()),
            Some(script) => match parse_yaml(script).map_err(|problems| problems.in_source(script))?.to_json() {
                Json::Object(members) => members,
                _ => return Ok(script.clone()),
            },
            None => Map::from_iter([("server".to_owned(), json!({ "name": "mock" }))]),
        };
        for (key, value) in &self.members {
            match (members.get_mut(key), value) {
                (Some(Json::Array(items)), Json::Array(more)) => items.extend(more.iter().cloned()),
                _ => drop(members.insert(key.clone(), value.clone())),
            }
        }
        Ok(Source::new("<builder>", yaml(&Json::Object(members))))
    }

    /// The engine of the server, for [`serve_pipe`](super::serve::serve_pipe) or [`MockServer::start`].
    ///
    /// # Errors
    /// Every mistake in the script.
    pub fn engine(&self) -> Result<Arc<Engine>, Diagnostics> {
        let script = Script::parse_with(&self.source()?, self.handlers.clone())?;
        Ok(Engine::new(script, self.seed, Journal::default()))
    }

    /// Starts the server on a free port of 127.0.0.1, for all network transports at once.
    ///
    /// # Errors
    /// [`StartError`]: the script has mistakes, or there is no free port.
    pub async fn start(self) -> Result<MockServer, StartError> {
        let engine = self.engine().map_err(StartError::Script)?;
        let recorder = self.record_traces.then(Arc::default);
        let listen = ListenOptions { recorder, ..ListenOptions::default() };
        let mut server = MockServer::start(engine, listen).await?;
        server.verify_on_drop(self.verify_on_drop);
        Ok(server)
    }
}

/// JSON that is YAML too: characters that JSON may have as they are, but YAML may not (YAML 1.2, 5.1), are escaped.
fn yaml(value: &Json) -> String {
    let (mut text, json) = (String::new(), format!("{value:#}"));
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                text += &format!("\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

    use super::*;
    use rehearse_protocol::Transport;

    /// A client over a pipe, after the handshake.
    struct Client(Lines<BufReader<ReadHalf<DuplexStream>>>, WriteHalf<DuplexStream>);

    impl Client {
        async fn connect(server: &MockServer) -> Client {
            let (reader, writer) = tokio::io::split(server.connect());
            let mut client = Client(BufReader::new(reader).lines(), writer);
            let info = json!({ "name": "c", "version": "1" });
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
            client.request("initialize", params).await;
            client
        }

        async fn request(&mut self, method: &str, params: Json) -> Json {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            self.1.write_all(format!("{request}\n").as_bytes()).await.expect("writes");
            let line = tokio::time::timeout(Duration::from_secs(60), self.0.next_line()).await;
            serde_json::from_str(&line.expect("in time").expect("reads").expect("a line")).expect("JSON")
        }

        async fn tool(&mut self, name: &str, arguments: Json) -> Json {
            self.request("tools/call", json!({ "name": name, "arguments": arguments })).await
        }
    }

    fn text(answer: &Json) -> &str {
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
    }

    #[tokio::test]
    async fn every_character_of_json_is_taken() {
        let odd = "\0 \u{7f} \u{80} \u{85} \u{9f} \u{2028} \u{feff} \u{fffe} \u{ffff} 😀";
        let server = MockServer::builder().tool(Tool::new("odd").description(odd)).start().await.expect("valid");
        server.add_rule(ItemKind::Tool, "odd", Rule::always().reply(odd)).expect("valid");
        let mut client = Client::connect(&server).await;
        assert_eq!(client.request("tools/list", json!({})).await["result"]["tools"][0]["description"], odd);
        assert_eq!(text(&client.tool("odd", json!({})).await), odd);
    }

    #[tokio::test]
    async fn tools_answer_by_their_rules_and_are_verified() {
        let server = MockServer::builder()
            .name("built")
            .tool(Tool::new("plain").description("Says so.").replies(["one", "two"]).expect(2))
            .tool(
                Tool::new("ruled")
                    .rule(Rule::when_args(json!({ "city": { "matches": "^A" } })).error("no such city"))
                    .rule(Rule::when(json!({ "call": 2 })).rpc_error(-7, "again"))
                    .rule(Rule::always().delay(Duration::from_millis(1)).reply("{{ args.city }}").expect(1..=2)),
            )
            .tool(Tool::new("stepwise").steps([json!({ "wait": "1ms" }), json!({ "reply": { "json": [1] } })]))
            .start()
            .await
            .expect("valid");
        let mut client = Client::connect(&server).await;
        assert_eq!(text(&client.tool("plain", json!({})).await), "one");
        let unmet = server.verify().unmet;
        let unmet: Vec<_> = unmet.iter().map(|unmet| (&*unmet.label, &*unmet.expected, unmet.calls)).collect();
        assert_eq!(unmet, [("tools.plain", "2 calls", 1), ("tools.ruled.rules[2]", "1 to 2 calls", 0)]);
        assert_eq!(text(&client.tool("plain", json!({})).await), "two");
        assert_eq!(client.tool("ruled", json!({ "city": "Atlantis" })).await["result"]["isError"], true);
        assert_eq!(client.tool("ruled", json!({ "city": "Oslo" })).await["error"]["code"], -7);
        assert_eq!(text(&client.tool("ruled", json!({ "city": "Oslo" })).await), "Oslo");
        assert_eq!(text(&client.tool("stepwise", json!({})).await), "[1]");
        server.assert_verified();
        assert_eq!(server.journal().len(), 7);
        assert_eq!(server.url(Transport::Ws), Some(format!("ws://{}/ws", server.address())));
    }

    #[tokio::test]
    async fn the_builder_covers_resources_prompts_and_methods() {
        let server = MockServer::builder()
            .state(json!({ "n": 3 }))
            .protocol("2025-11-25")
            .resource(Resource::new("file:///a").set("text", "of a"))
            .resource_template(
                ResourceTemplate::new("file:///{name}").set("json", json!({ "name": "{{ args.name }}" })),
            )
            .prompt(Prompt::new("greet").argument("who", true).message("user", "Hello {{ args.who }}"))
            .method(Method::new("my/own").reply(json!({ "result": { "n": "{{ state.n }}" } })))
            .set("unexpected", "fail")
            .start()
            .await
            .expect("valid");
        let mut client = Client::connect(&server).await;
        let read = |uri| json!({ "uri": uri });
        let contents = |answer: &Json| answer["result"]["contents"][0]["text"].clone();
        assert_eq!(contents(&client.request("resources/read", read("file:///a")).await), "of a");
        assert_eq!(contents(&client.request("resources/read", read("file:///b")).await), r#"{"name":"b"}"#);
        let got = client.request("prompts/get", json!({ "name": "greet", "arguments": { "who": "Ada" } })).await;
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "Hello Ada");
        assert_eq!(client.request("my/own", json!({})).await["result"]["n"], 3);
        assert_eq!(server.verify().expectations, 1);
    }

    #[tokio::test]
    async fn a_script_is_read_as_it_is_and_stubs_are_added_to_it() {
        let script = "server: { name: file }\ntools: [{ name: a, reply: from the file }]";
        let server = MockServer::from_script(script).tool(Tool::new("b").reply("built")).start().await.expect("valid");
        let mut client = Client::connect(&server).await;
        assert_eq!(text(&client.tool("a", json!({})).await), "from the file");
        assert_eq!(text(&client.tool("b", json!({})).await), "built");
        let id = server.add_rule(ItemKind::Tool, "b", Rule::always().reply("added")).expect("fits");
        assert_eq!(text(&client.tool("b", json!({})).await), "added");
        assert!(server.engine().remove_rule(&id));
        assert_eq!(text(&client.tool("b", json!({})).await), "built");
        server.reset();
        assert_eq!((server.journal().len(), server.engine().name()), (0, "file".into()));
    }

    #[tokio::test]
    async fn a_mistake_is_shown_with_what_was_written() {
        let tool = Tool::new("t").rule(Rule::always().reply("{{ arg.x }}"));
        let error = MockServer::builder().tool(tool).start().await.expect_err("wrong");
        let shown = format!("{error:?}");
        assert!(
            shown.starts_with("<builder>:") && shown.contains("there is no `arg` (did you mean `args`?)"),
            "{shown}"
        );
        assert!(shown.ends_with(r#"in: "reply": "{{ arg.x }}""#), "{shown}");
        let error = MockServer::from_script("tool: []").start().await.expect_err("wrong").to_string();
        assert!(error.starts_with("<script>:1:1: a mock script has no key `tool`"), "{error}");
    }

    #[tokio::test]
    #[should_panic(expected = "tools.t: expected at least 1 call, got 0 calls")]
    async fn a_server_that_is_dropped_before_what_is_expected_came_panics() {
        let server = MockServer::builder().tool(Tool::new("t").reply("x").expect(1..)).start().await.expect("valid");
        drop(server);
    }

    #[tokio::test]
    #[should_panic(expected = "the test's own")]
    async fn a_test_that_fails_for_another_reason_says_so() {
        let _server = MockServer::builder().tool(Tool::new("t").reply("x").expect(1)).start().await.expect("valid");
        panic!("the test's own");
    }

    #[tokio::test]
    async fn verification_on_drop_can_be_turned_off() {
        let builder = MockServer::builder().tool(Tool::new("t").reply("x").expect(1..3)).verify_on_drop(false);
        let server = builder.start().await.expect("valid");
        assert_eq!(server.verify().to_string(), "tools.t: expected 1 to 2 calls, got 0 calls\n");
        server.stop(Duration::ZERO).await;
    }
}
