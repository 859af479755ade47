//! Scenarios of recorded traffic.
//!
//! A connection of a trace becomes one scenario, in each version that it spoke. Each request of the client that the server
//! has answered is a step, in the order of the requests; a list is a `request` for each page. The recorded answer goes
//! through the same view as the answer of a run, so it is compared as the snapshot of the step; `connect` expects the
//! recorded name, capabilities and instructions, and an error is expected as such. What the client has answered to the
//! server (sampling, elicitation, roots) are the `answers` of the step: those of its requests between request and answer in
//! the legacy era, those of its repeated calls in the modern one. Notifications are not compared with the recording, because
//! a client asks for them in its own way. The replay ([`replay`](replay())) runs the scenario twice: what differs
//! between both runs is no matter of the recording, and is redacted in all three.

mod replay;
mod volatile;

pub use replay::{Replay, ReplayTarget, replay};

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};

use rehearse_conformance::{Call, Connection, Evidence, Facts, Kind};
use rehearse_document::{template::without_templates, yaml};
use rehearse_protocol::{
    List, Operation, Version,
    names::META_LOG_LEVEL,
    trace_file::{MASK, TraceFile},
};

use super::snapshot::observation::without_envelope;

/// The shortest text that is taken for an id.
const SHORTEST_ID: usize = 8;
/// The name of the server in the scenarios.
pub(super) const SERVER: &str = "server";

/// A scenario of a connection.
#[derive(Debug)]
pub struct RecordedScenario {
    /// The name of the server in the trace.
    pub server: String,
    /// What of the connection is not in the scenario.
    pub lost: Vec<String>,
    /// Comments at the beginning of the file, each a whole line.
    pub head: String,
    /// Comments after the steps.
    pub tail: String,
    version: Version,
    /// Answers to requests of the server that came outside of a step.
    answers: Map<String, Json>,
    pub(super) steps: Vec<RecordedStep>,
}

/// A step, and what was answered.
#[derive(Debug)]
pub(super) struct RecordedStep {
    step: Map<String, Json>,
    /// The name of its snapshot. None if the answer is different each time, or is expected in another way.
    pub(super) snapshot: Option<String>,
    /// The recorded answer; null if that of the replay is right.
    pub(super) view: Json,
}

/// Makes steps of calls.
#[derive(Default)]
struct Steps {
    steps: Vec<RecordedStep>,
    /// How many snapshots have each name.
    names: HashMap<String, usize>,
    lost: Vec<String>,
    /// The questions of the last answer, by key, with their methods.
    asked: HashMap<String, String>,
    /// What the client has answered to the questions of the next step.
    answers: Map<String, Json>,
}

impl RecordedScenario {
    /// The scenarios of the connections of a file that have a step.
    pub fn all(file: &TraceFile) -> Vec<RecordedScenario> {
        RecordedScenario::each(file, |scenario| scenario)
    }

    /// The same with a step for each kind of list, as `discover`. What is right is not what was recorded, but what the
    /// replay brings.
    pub fn all_with_surface(file: &TraceFile) -> Vec<RecordedScenario> {
        RecordedScenario::each(file, RecordedScenario::with_surface)
    }

    fn each(file: &TraceFile, change: fn(RecordedScenario) -> RecordedScenario) -> Vec<RecordedScenario> {
        let mut all = Vec::new();
        for connection in &file.connections {
            let (trace, transport) = (&connection.trace, connection.info.transport);
            for version in Evidence::versions(trace) {
                let evidence = Evidence::new(&[trace], version, transport, Facts::default());
                let server = connection.info.server.clone();
                let of_connection = evidence.connections.iter().map(|it| RecordedScenario::new(&server, version, it));
                all.extend(of_connection.filter(|scenario| !scenario.steps.is_empty()));
            }
        }
        // A step captures nothing of one that is no longer there.
        let mut all: Vec<_> = all.into_iter().map(change).collect();
        all.iter_mut().for_each(|scenario| capture_values(&mut scenario.steps));
        all
    }

    fn new(server: &str, version: Version, connection: &Connection<'_>) -> RecordedScenario {
        let mut steps = Steps::default();
        let asks: Vec<_> = connection.asks().collect();
        let mut used = 0;
        let is_request = |call: &Call<'_>| call.request.kind == Kind::Request && call.request.case.is_none();
        for call in connection.calls().filter(is_request) {
            let Some(response) = call.response else {
                steps.lost.push(format!("{}, which was not answered", call.method()));
                continue;
            };
            for ask in asks.iter().skip(used).take_while(|ask| ask.request.place < response.place) {
                used += 1;
                if let Some(answer) = ask.responses.first() {
                    steps.answer(ask.method(), answer.result(), answer.error());
                }
            }
            steps.add(&call);
        }
        for ask in asks.iter().skip(used) {
            if let Some(answer) = ask.responses.first() {
                steps.answer(ask.method(), answer.result(), answer.error());
            }
        }
        let Steps { steps, mut lost, answers, .. } = steps;
        if steps.iter().any(|step| Json::from(step.step.clone()).to_string().contains(MASK)) {
            lost.push(format!("secrets, which are {MASK}"));
        }
        lost.sort();
        lost.dedup();
        let (head, tail) = (String::new(), String::new());
        RecordedScenario { server: server.to_owned(), lost, head, tail, version, answers, steps }
    }

    /// The text of the scenario file, for a server as it stands in one, with these redactions.
    pub fn text(&self, server: &Json, redactions: &[Json]) -> String {
        let mut file = Map::new();
        file.insert("servers".to_owned(), json!({ SERVER: server }));
        file.insert("matrix".to_owned(), json!({ "protocol": self.version.as_str() }));
        if !self.answers.is_empty() {
            file.insert("answers".to_owned(), self.answers.clone().into());
        }
        if !redactions.is_empty() {
            file.insert("redact".to_owned(), redactions.into());
        }
        file.insert("steps".to_owned(), self.steps.iter().map(RecordedStep::to_json).collect());
        format!("{}{}{}", self.head, yaml::to_text(&file), self.tail)
    }

    fn with_surface(mut self) -> RecordedScenario {
        let mut seen = Vec::new();
        self.steps.retain_mut(|step| {
            let method = step.step.get("request").and_then(|request| request["method"].as_str());
            let list = method.and_then(List::of_method).filter(|_| !step.step.contains_key("expect"));
            let Some(list) = list else { return true };
            if seen.contains(&list) {
                return false;
            }
            seen.push(list);
            step.step = Map::from_iter([(list.step().to_owned(), json!({}))]);
            (step.snapshot, step.view) = (Some(format!("{}s", list.noun())), Json::Null);
            true
        });
        self
    }
}

/// Lets a step use what an earlier answer brings, where the recorded client has sent it back: cursors, and ids that the
/// server has made up.
fn capture_values(steps: &mut [RecordedStep]) {
    let mut count = 0;
    for index in 1..steps.len() {
        let (earlier, step) = steps.split_at_mut(index);
        let Some((_, action)) = step.first_mut().and_then(|step| step.step.iter_mut().next()) else { continue };
        replace_strings(action, &mut |text| {
            let mut latest = earlier.iter_mut().rev();
            let (pointer, from) = latest.find_map(|it| Some((pointer_of(&it.view, text)?, it)))?;
            let member = pointer.rsplit('/').find(|key| key.parse::<usize>().is_err())?;
            if member != "nextCursor" && !is_made_up(text) {
                return None;
            }
            let captures = from.step.entry("capture").or_insert_with(|| json!({})).as_object_mut()?;
            let known = captures.iter().find(|(_, at)| **at == pointer).map(|(name, _)| name.clone());
            let name = known.unwrap_or_else(|| {
                count += 1;
                let plain: String = member.chars().filter(char::is_ascii_alphanumeric).collect();
                let name = format!("{plain}{count}");
                captures.insert(name.clone(), pointer.as_str().into());
                name
            });
            Some(format!("{{{{ captured.{name} }}}}"))
        });
    }
}

/// Whether a text looks like an id that a server has made up.
fn is_made_up(text: &str) -> bool {
    let has = |is: fn(&char) -> bool| text.chars().any(|c| is(&c));
    let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=+".contains(c));
    is_word && text.len() >= SHORTEST_ID && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

/// Replaces the strings in a value for which the function returns another.
fn replace_strings(value: &mut Json, replace: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Json::String(text) => {
            if let Some(new) = replace(text) {
                *text = new;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| replace_strings(item, replace)),
        Json::Object(members) => members.values_mut().for_each(|member| replace_strings(member, replace)),
        _ => {}
    }
}

/// Where a value has this string, as a JSON pointer.
fn pointer_of(value: &Json, text: &str) -> Option<String> {
    let below = |key: String, value| Some(format!("/{key}{}", pointer_of(value, text)?));
    match value {
        Json::String(found) => (found == text).then(String::new),
        Json::Array(items) => items.iter().enumerate().find_map(|(index, item)| below(index.to_string(), item)),
        Json::Object(members) => {
            members.iter().find_map(|(key, member)| below(key.replace('~', "~0").replace('/', "~1"), member))
        }
        _ => None,
    }
}

impl RecordedStep {
    fn to_json(&self) -> Json {
        let mut step = self.step.clone();
        step.extend(self.snapshot.iter().map(|name| ("snapshot".to_owned(), name.as_str().into())));
        step.into()
    }
}

impl Steps {
    /// Keeps what the client has answered for the next step.
    fn answer(&mut self, method: &str, result: Option<&Json>, error: Option<&Json>) {
        let key = match method {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            "ping" => return,
            _ => return self.lost.push(format!("the answer to {method}")),
        };
        let answer = match (key, result, error) {
            ("roots", Some(result), _) => {
                self.answers.insert(key.to_owned(), result["roots"].clone());
                return;
            }
            (_, Some(result), _) => result.clone(),
            ("roots", None, _) | (_, None, None) => return self.lost.push(format!("the answer to {method}")),
            (_, None, Some(error)) => json!({ "error": error }),
        };
        if let Some(answers) = self.answers.entry(key).or_insert_with(|| json!([])).as_array_mut() {
            answers.push(answer);
        }
    }

    fn add(&mut self, call: &Call<'_>) {
        let params = call.request.params();
        for (key, result) in params["inputResponses"].as_object().into_iter().flatten() {
            if let Some(method) = self.asked.remove(key) {
                self.answer(&method, Some(result), None);
            }
        }
        let result = call.result();
        if let Some(result) = result.filter(|result| result["resultType"] == "input_required") {
            let asked = result["inputRequests"].as_object().into_iter().flatten();
            let method = |request: &Json| request["method"].as_str().unwrap_or_default().to_owned();
            self.asked = asked.map(|(key, request)| (key.clone(), method(request))).collect();
            return;
        }
        if matches!(call.method(), "initialize" | "server/discover") {
            return self.connect(result);
        }
        let Some((action, title)) = self.action(call) else { return };
        let mut expect = Map::new();
        let view = match (result, call.response.and_then(|response| response.error())) {
            (Some(result), _) => {
                if result["isError"] == true {
                    expect.insert("isError".to_owned(), true.into());
                }
                let is_unit = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
                if is_unit.contains(&call.method()) { json!({}) } else { without_envelope(result.clone()) }
            }
            (None, Some(error)) => {
                expect.insert("rpcError".to_owned(), json!({ "code": error["code"] }));
                json!({ "rpcError": error })
            }
            (None, None) => return self.lost.push(format!("{title}, whose answer is neither a result nor an error")),
        };
        let mut step = action;
        if !expect.is_empty() {
            step.insert("expect".to_owned(), expect.into());
        }
        if !self.answers.is_empty() {
            step.insert("answers".to_owned(), std::mem::take(&mut self.answers).into());
        }
        let snapshot = Some(self.name(&title));
        self.steps.push(RecordedStep { step, snapshot, view });
    }

    /// The handshake, once. A version of the server is to change.
    fn connect(&mut self, result: Option<&Json>) {
        let Some(result) = result.filter(|_| self.steps.is_empty()) else { return };
        let info = result.get("serverInfo").or_else(|| result.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
        let mut at = Map::new();
        at.insert("/capabilities".to_owned(), json!({ "equals": result["capabilities"] }));
        let name = info.map(|info| ("/serverInfo/name".to_owned(), json!({ "equals": info["name"] })));
        let instructions = result.get("instructions").map(|it| ("/instructions".to_owned(), json!({ "equals": it })));
        at.extend(name.into_iter().chain(instructions));
        let step = json!({ "connect": {}, "expect": { "at": at } });
        let step = step.as_object().cloned().unwrap_or_default();
        self.steps.push(RecordedStep { step, snapshot: None, view: Json::Null });
    }

    /// What the step does, and its title. `None` if a scenario does not say it.
    fn action(&mut self, call: &Call<'_>) -> Option<(Map<String, Json>, String)> {
        let mut operation = Operation::new(call.method(), call.request.params().clone());
        let level = operation.params.get("_meta").map(|meta| meta[META_LOG_LEVEL].clone());
        for key in ["_meta", "inputResponses", "requestState"] {
            operation.params.shift_remove(key);
        }
        let is_task = operation.method == Operation::CALL && operation.params.contains_key("task");
        match &*operation.method {
            method @ ("" | "subscriptions/listen") => {
                self.lost.push(format!("the request {method}"));
                return None;
            }
            method if is_task || method.starts_with("tasks/") => {
                self.lost.push(format!("the task of {method}"));
                return None;
            }
            _ => {}
        }
        let (key, mut value) = operation.step();
        if let (Operation::CALL, Some(level @ Json::String(_))) = (&*operation.method, level) {
            value["logLevel"] = level;
        }
        Some((Map::from_iter([(key.to_owned(), without_templates(value))]), operation.title()))
    }

    /// The title as the name of a snapshot that no other step has.
    fn name(&mut self, title: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let words: Vec<_> = title.split(|c| !is_plain(c)).filter(|word| !word.is_empty()).collect();
        let name = words.join("-");
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{count}") }
    }
}
