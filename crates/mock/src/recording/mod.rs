//! A mock script of recorded traffic.

mod reply;

use std::collections::{BTreeMap, HashMap};

use rehearse_conformance::{Call, Connection, Evidence, Facts};
use rehearse_document::yaml;
use rehearse_protocol::trace_file::{MASK, TraceFile};
use serde_json::{Map, Value, json};

use self::reply::{error_reply, members, method_reply, prompt_reply, questions, resource_reply, steps, tool_reply};

const TOOL: &[&str] =
    &["name", "title", "description", "icons", "annotations", "execution", "inputSchema", "outputSchema", "_meta"];
const RESOURCE: &[&str] =
    &["uri", "uriTemplate", "name", "title", "description", "mimeType", "icons", "annotations", "size", "_meta"];
const PROMPT: &[&str] = &["name", "title", "description", "arguments", "icons", "_meta"];
/// The requests that a mock answers by itself.
const OWN: &[&str] = &["initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen"];
/// Members of params that say nothing of what is asked for.
const NO_ARGUMENTS: [&str; 4] = ["_meta", "inputResponses", "requestState", "cursor"];

/// A script that answers as the server of a trace has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedScript {
    /// The script, in YAML. It has mistakes if the definitions of the server have.
    pub text: String,
    /// What of the trace is not in it.
    pub lost: Vec<String>,
}

impl RecordedScript {
    /// The script of a trace.
    ///
    /// ```
    /// use rehearse_mock::{MockServer, Tool, recording::RecordedScript};
    /// use rehearse_protocol::{Transport, trace_file::{ConnectionInfo, RecordedConnection, TraceFile}};
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A server whose traffic is recorded, here a mock.
    /// let server = MockServer::builder().record_traces().tool(Tool::new("echo").reply("{{ args.text }}")).start().await?;
    /// let mut client = BufReader::new(server.connect());
    /// for request in [
    ///     r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    ///     r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#,
    /// ] {
    ///     client.write_all(format!("{request}\n").as_bytes()).await?;
    ///     client.read_line(&mut String::new()).await?;
    /// }
    ///
    /// let info = ConnectionInfo::new("server", Transport::Memory);
    /// let connections = server.traces().into_iter().map(|trace| RecordedConnection { info: info.clone(), trace });
    /// let script = RecordedScript::new(&TraceFile { connections: connections.collect(), is_cut: false });
    /// assert!(script.text.contains("when: { args: { equals: { text: x } } }"));
    /// assert_eq!(script.lost, ["the definition of echo, which was never listed"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(file: &TraceFile) -> RecordedScript {
        let mut recording = Recording::default();
        for connection in &file.connections {
            let mut versions = Evidence::versions(&connection.trace);
            if versions.is_empty() {
                // A part of a recording may lack the handshake.
                versions.extend(Evidence::asked_version(&connection.trace));
            }
            if versions.is_empty() {
                recording.lost.push("a connection without a version".to_owned());
            }
            for version in versions {
                let evidence =
                    Evidence::new(&[&connection.trace], version, connection.info.transport, Facts::default());
                evidence.connections.iter().for_each(|connection| recording.add(connection));
            }
        }
        let (script, lost) = recording.finish();
        RecordedScript { text: yaml::to_text(&script), lost }
    }
}

/// A listed tool as an item of a script, without an answer.
pub fn tool_item(listed: &Value) -> Value {
    members(listed, TOOL)
}

/// What a script is made of.
#[derive(Default)]
struct Recording {
    server: Value,
    instructions: Value,
    /// The listed items, by kind and key.
    tools: Items,
    resources: Items,
    templates: Items,
    prompts: Items,
    methods: Items,
    lost: Vec<String>,
}

/// Items in the order in which they were seen first.
#[derive(Default)]
struct Items {
    items: Vec<Item>,
    /// The position of each, by name.
    positions: HashMap<String, usize>,
}

struct Item {
    name: String,
    definition: Map<String, Value>,
    /// The arguments of each call, and its answers.
    rules: Vec<(Value, Vec<Answer>)>,
    /// The position of each rule, by arguments.
    positions: HashMap<Value, usize>,
}

#[derive(Clone, PartialEq)]
struct Answer {
    steps: Vec<Value>,
    reply: Value,
}

impl Recording {
    /// Adds everything that the client has asked for in a connection.
    fn add(&mut self, connection: &Connection<'_>) {
        // The questions of calls that the client repeats with its answers, by the call.
        let mut asked: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for call in connection.calls().filter(|call| call.request.case.is_none() && !call.method().is_empty()) {
            if call.request.id().is_none() {
                continue;
            }
            let mut params = call.request.params().clone();
            for key in NO_ARGUMENTS {
                params.as_object_mut().map(|params| params.shift_remove(key));
            }
            let key = format!("{} {params}", call.method());
            let mut answer = asked.remove(&key).unwrap_or_default();
            answer.extend(steps(connection, &call, &mut self.lost));
            match call.result() {
                Some(result) if result["resultType"] == "input_required" => {
                    answer.extend(questions(result, &mut self.lost));
                    asked.insert(key, answer);
                }
                Some(result) => self.add_result(&call, &params, result, answer),
                None => match call.response.and_then(|response| response.error()) {
                    Some(error) => self.add_answer(&call, &params, answer, error_reply(error)),
                    None => self.lost.push(format!("a call of {} without an answer", subject(&call))),
                },
            }
        }
    }

    fn add_result(&mut self, call: &Call<'_>, params: &Value, result: &Value, steps: Vec<Value>) {
        let reply = match call.method() {
            "initialize" | "server/discover" => {
                let info =
                    result.get("serverInfo").or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
                if let (Value::Null, Some(info)) = (&self.server, info) {
                    self.server = members(info, &["name", "title", "version", "description", "websiteUrl", "icons"]);
                    self.instructions = result["instructions"].clone();
                }
                return;
            }
            "tools/list" => return self.tools.list(&result["tools"], "name", TOOL),
            "resources/list" => return self.resources.list(&result["resources"], "uri", RESOURCE),
            "resources/templates/list" => {
                return self.templates.list(&result["resourceTemplates"], "uriTemplate", RESOURCE);
            }
            "prompts/list" => return self.prompts.list(&result["prompts"], "name", PROMPT),
            "tools/call" => tool_reply(result),
            "resources/read" => resource_reply(params["uri"].as_str().unwrap_or_default(), result),
            "prompts/get" => prompt_reply(result),
            _ => method_reply(result),
        };
        self.add_answer(call, params, steps, reply);
    }

    fn add_answer(&mut self, call: &Call<'_>, params: &Value, steps: Vec<Value>, reply: Value) {
        let arguments = || params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let (items, key, arguments) = match call.method() {
            "tools/call" => (&mut self.tools, "name", arguments()),
            "prompts/get" => (&mut self.prompts, "name", arguments()),
            "resources/read" => (&mut self.resources, "uri", json!({})),
            method if OWN.contains(&method) || is_of_mcp(method) => {
                return self.lost.push(format!("the answer to {}", subject(call)));
            }
            method => {
                let item = self.methods.item(method, json!({ "method": method }));
                return item.add(params.clone(), Answer { steps, reply });
            }
        };
        let name = params[key].as_str().unwrap_or_default();
        // The mock refuses unknown names by itself.
        if reply.get("rpcError").is_some() && !items.has(name) {
            return;
        }
        if !items.has(name) {
            self.lost.push(format!("the definition of {name}, which was never listed"));
        }
        items.item(name, json!({ key: name })).add(arguments, Answer { steps, reply });
    }

    fn finish(mut self) -> (Map<String, Value>, Vec<String>) {
        let mut script = Map::new();
        if !self.server.is_null() {
            script.insert("server".to_owned(), self.server);
        }
        if !self.instructions.is_null() {
            script.insert("instructions".to_owned(), self.instructions);
        }
        let lost = &mut self.lost;
        for (key, items, arguments) in [
            ("tools", self.tools, Some("args")),
            // A URI says all.
            ("resources", self.resources, None),
            ("resourceTemplates", self.templates, None),
            ("prompts", self.prompts, Some("args")),
            ("methods", self.methods, Some("params")),
        ] {
            let items: Vec<_> = items.items.into_iter().map(|item| item.finish(arguments, lost)).collect();
            if !items.is_empty() {
                script.insert(key.to_owned(), items.into());
            }
        }
        lost.sort();
        lost.dedup();
        if Value::from(script.clone()).to_string().contains(MASK) {
            lost.push(format!("secrets, which are {MASK}"));
        }
        (script, self.lost)
    }
}

/// Whether the method is one of MCP, whose answers a script says in another way.
fn is_of_mcp(method: &str) -> bool {
    ["completion/", "tasks/", "resources/", "tools/", "prompts/", "notifications/"]
        .iter()
        .any(|area| method.starts_with(area))
}

/// A call in a few words.
fn subject(call: &Call<'_>) -> String {
    let params = call.request.params();
    match params["name"].as_str().or(params["uri"].as_str()) {
        Some(name) => format!("{} {name}", call.method()),
        None => call.method().to_owned(),
    }
}

impl Items {
    fn has(&self, name: &str) -> bool {
        self.positions.contains_key(name)
    }

    fn item(&mut self, name: &str, definition: Value) -> &mut Item {
        let index = self.positions.get(name).copied().unwrap_or_else(|| {
            let definition = definition.as_object().cloned().unwrap_or_default();
            let (rules, positions) = (Vec::new(), HashMap::new());
            self.positions.insert(name.to_owned(), self.items.len());
            self.items.push(Item { name: name.to_owned(), definition, rules, positions });
            self.items.len() - 1
        });
        &mut self.items[index]
    }

    /// Adds a page of a list. The first definition of a name counts.
    fn list(&mut self, page: &Value, key: &str, known: &[&str]) {
        for listed in page.as_array().into_iter().flatten() {
            if let Some(name) = listed[key].as_str() {
                self.item(name, members(listed, known));
            }
        }
    }
}

impl Item {
    fn add(&mut self, arguments: Value, answer: Answer) {
        match self.positions.get(&arguments) {
            Some(position) => self.rules[*position].1.push(answer),
            None => {
                self.positions.insert(arguments.clone(), self.rules.len());
                self.rules.push((arguments, vec![answer]));
            }
        }
    }

    /// The item of the script. It has a rule for what was recorded, by the arguments at `key`, and none for anything
    /// else: a request that was not recorded gets the mock's error, and fails its verification.
    fn finish(self, key: Option<&str>, lost: &mut Vec<String>) -> Value {
        let Item { name, definition: mut item, rules, .. } = self;
        let mut written: Vec<Value> = Vec::new();
        for (arguments, answers) in rules {
            let answer = plan(&name, answers, lost);
            let Some(key) = key else {
                item.extend(answer);
                return item.into();
            };
            let mut rule = Map::new();
            rule.insert("when".to_owned(), json!({ key: matcher(key, &arguments) }));
            rule.extend(answer);
            written.push(rule.into());
        }
        item.insert("rules".to_owned(), written.into());
        item.into()
    }
}

/// Answers in sequence, as members of a rule.
fn plan(name: &str, mut answers: Vec<Answer>, lost: &mut Vec<String>) -> Map<String, Value> {
    // Equal answers at the end: the last one repeats.
    while answers.len() > 1 && answers[answers.len() - 1] == answers[answers.len() - 2] {
        answers.pop();
    }
    let mut plan = Map::new();
    match &mut answers[..] {
        [Answer { steps, reply }] if steps.is_empty() => plan.insert("reply".to_owned(), reply.take()),
        [Answer { steps, reply }] => {
            steps.push(json!({ "reply": reply }));
            plan.insert("steps".to_owned(), std::mem::take(steps).into())
        }
        several => {
            if several.iter().any(|answer| !answer.steps.is_empty()) {
                lost.push(format!("the steps of repeated calls of {name}"));
            }
            plan.insert("replies".to_owned(), several.iter_mut().map(|answer| answer.reply.take()).collect())
        }
    };
    plan
}

/// A matcher for exactly these arguments; masked ones only have to be there.
fn matcher(key: &str, arguments: &Value) -> Value {
    let is_masked = |value: &Value| value.to_string().contains(MASK);
    let Some(members) = arguments.as_object().filter(|_| key == "params" || is_masked(arguments)) else {
        return json!({ "equals": arguments });
    };
    let one = |(key, value): (&String, &Value)| {
        (key.clone(), if is_masked(value) { json!({ "exists": true }) } else { json!({ "equals": value }) })
    };
    let mut matcher = Map::new();
    if !members.is_empty() {
        matcher.insert("subset".to_owned(), members.iter().map(one).collect::<Map<_, _>>().into());
    }
    let names: Vec<_> = members.keys().map(String::as_str).chain(NO_ARGUMENTS).collect();
    matcher.insert("schema".to_owned(), json!({ "propertyNames": { "enum": names } }));
    matcher.into()
}
