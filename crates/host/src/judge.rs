//! What a host made of a server.

use rehearse_client_configs::headless::{Failure, FailureSource, Headless};
use rehearse_document::text::quoted;
use rehearse_protocol::{
    Direction, Trace,
    names::{META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION},
};
use rehearse_report::host::{HostCall, HostConnection, HostRun, HostTool};
use serde_json::Value;

use crate::{
    Asked, HostEnd, HostOutcome, WalkedTool,
    asked::ShownResult,
    definition::{description_change, is_same, kept, schema_changes},
};

/// How much of a text is shown.
const SHOWN: usize = 200;
/// How many lines that the host printed are kept.
const PRINTED: usize = 10;

/// What is known of a run.
#[derive(Debug)]
pub struct HostEvidence<'a> {
    /// How the host is driven.
    pub headless: &'a Headless,
    /// The server in the config of the host.
    pub server: &'a str,
    /// The tools of the server, as it lists them.
    pub tools: &'a [Value],
    /// What the model was to call.
    pub walked: &'a [WalkedTool],
    /// What the host did.
    pub outcome: &'a HostOutcome,
}

/// A message of the traffic.
pub(crate) struct Sent {
    /// The number of its connection: each has ids of its own.
    connection: usize,
    pub(crate) direction: Direction,
    pub(crate) message: Value,
}

/// Completes the result of a host.
pub fn judge(evidence: &HostEvidence<'_>, run: &mut HostRun) {
    let sent = messages(&evidence.outcome.traces);
    let outcome = evidence.outcome;
    run.duration = outcome.duration;
    run.tried_to_reach.clone_from(&outcome.tried_to_reach);
    run.asked_after = outcome.asked_after.unwrap_or_default();
    run.connection = connection(evidence, &sent);
    let asked = fullest(evidence);
    // A host that has not asked the model shows it nothing, whatever the reason is.
    run.was_asked = asked.is_some();
    let tools = evidence.tools.iter().filter(|_| asked.is_some());
    run.tools = tools.map(|tool| of_tool(evidence, tool, asked, &sent)).collect();
    let names = |tool: &HostTool| asked.map(|asked| asked.names(evidence.server, &tool.name)).unwrap_or_default();
    let names: Vec<(String, Vec<String>)> = run.tools.iter().map(|tool| (tool.name.clone(), names(tool))).collect();
    for (tool, (own, shown)) in run.tools.iter_mut().zip(&names).filter(|(_, (_, shown))| shown.len() == 1) {
        let alike = names.iter().filter(|(other, names)| other != own && names == shown);
        tool.alike = alike.map(|(other, _)| other.clone()).collect();
    }
    let others = asked.iter().flat_map(|asked| &asked.tools).map(|tool| tool.name.clone());
    run.other_tools = others.filter(|other| !names.iter().any(|(_, shown)| shown.contains(other))).collect();
    run.printed = printed(evidence);
    run.error = error(evidence);
    run.decide();
}

/// The messages of all connections, parsed.
pub(crate) fn messages(traces: &[Trace]) -> Vec<Sent> {
    let each = traces.iter().enumerate();
    let frames = each.flat_map(|(connection, trace)| trace.frames().map(move |frame| (connection, frame)));
    let sent = frames.filter_map(|(connection, frame)| {
        let message = serde_json::from_slice(&frame.bytes).ok()?;
        Some(Sent { connection, direction: frame.direction, message })
    });
    sent.collect()
}

/// The question in which the model sees most of the server's tools.
pub(crate) fn fullest<'e>(evidence: &HostEvidence<'e>) -> Option<&'e Asked> {
    evidence.outcome.asked.iter().max_by_key(|asked| shown(evidence, asked))
}

/// The response to a request on its connection.
pub(crate) fn answer<'s>(sent: &'s [Sent], request: &Sent) -> Option<&'s Value> {
    let id = Some(&request.message["id"]).filter(|id| !id.is_null())?;
    let mut answers = sent.iter().filter(|it| it.connection == request.connection);
    let is_answer = |it: &&Sent| {
        it.direction == Direction::ServerToClient && it.message["id"] == *id && it.message["method"].is_null()
    };
    answers.find(is_answer).map(|it| &it.message)
}

/// Whether all that the host would have sent was seen: it ended by itself, and nothing was too much to be kept.
fn is_whole(evidence: &HostEvidence<'_>) -> bool {
    let HostOutcome { end, traces, .. } = evidence.outcome;
    matches!(end, HostEnd::Exited(_)) && !traces.iter().any(Trace::is_full)
}

/// What host and server have agreed on; `None` if the server has answered no greeting.
fn connection(evidence: &HostEvidence<'_>, sent: &[Sent]) -> Option<HostConnection> {
    let requests =
        || sent.iter().filter(|it| it.direction == Direction::ClientToServer && it.message["method"].is_string());
    let is_greeting = |method: &Value| method == "initialize" || method == "server/discover";
    let opened = requests().filter(|it| is_greeting(&it.message["method"]));
    let (greeting, result) =
        opened.filter_map(|it| Some((it, &answer(sent, it)?["result"]))).rfind(|(_, result)| result.is_object())?;
    let (params, meta) = (&greeting.message["params"], &greeting.message["params"]["_meta"]);
    let of = |plain: &str, name: &str| if params[plain].is_null() { meta[name].clone() } else { params[plain].clone() };
    let client = of("clientInfo", META_CLIENT_INFO);
    let named = |key: &str| client[key].as_str().unwrap_or_default().to_owned();
    let mut versions = requests().filter_map(|it| it.message["params"]["_meta"][META_VERSION].as_str());
    let protocol = result["protocolVersion"].as_str().or(versions.next_back()).unwrap_or_default().to_owned();
    let mut methods: Vec<String> = Vec::new();
    for method in requests().filter_map(|it| it.message["method"].as_str()) {
        if !methods.iter().any(|known| known == method) {
            methods.push(method.to_owned());
        }
    }
    Some(HostConnection {
        transport: trace_transport(evidence, greeting.connection),
        protocol,
        client: format!("{} {}", named("name"), named("version")).trim().to_owned(),
        capabilities: of("capabilities", META_CLIENT_CAPABILITIES),
        methods,
    })
}

/// How many tools of the server the model is shown in a question.
fn shown(evidence: &HostEvidence<'_>, asked: &Asked) -> usize {
    let names = evidence.tools.iter().filter_map(|tool| tool["name"].as_str());
    names.filter(|name| asked.tool(evidence.server, name).is_some()).count()
}

fn trace_transport(evidence: &HostEvidence<'_>, connection: usize) -> String {
    let trace = evidence.outcome.traces.get(connection);
    trace.and_then(Trace::transport).map(|it| it.to_string()).unwrap_or_default()
}

fn of_tool(evidence: &HostEvidence<'_>, tool: &Value, asked: Option<&Asked>, sent: &[Sent]) -> HostTool {
    let name = tool["name"].as_str().unwrap_or_default();
    let found = asked.and_then(|asked| asked.tool(evidence.server, name));
    let changes = found.map(|found| {
        let description = description_change(tool["description"].as_str(), found.description.as_deref());
        description.into_iter().chain(schema_changes(&tool["inputSchema"], &found.schema)).collect()
    });
    let walked = evidence.walked.iter().find(|it| it.name == name).filter(|_| found.is_some());
    HostTool {
        name: name.to_owned(),
        shown: found.map(|found| found.name.clone()),
        alike: Vec::new(),
        changes: changes.unwrap_or_default(),
        call: walked.zip(found).and_then(|(walked, found)| of_call(evidence, walked, &found.name, sent)),
    }
}

/// What became of a call; `None` if it may still have come.
fn of_call(evidence: &HostEvidence<'_>, walked: &WalkedTool, shown: &str, sent: &[Sent]) -> Option<HostCall> {
    let is_call = |it: &&Sent| {
        let message = &it.message;
        message["method"] == "tools/call"
            && message["params"]["name"] == *walked.name
            && it.direction == Direction::ClientToServer
    };
    let arguments = walked.arguments.clone();
    let Some(call) = sent.iter().find(is_call) else {
        if !is_whole(evidence) {
            return None;
        }
        let got =
            result_of(evidence, shown, 0).map(|seen| format!("the model got {}", quoted(seen.text.trim(), SHOWN)));
        return Some(HostCall { arguments, arrived: false, changes: got.into_iter().collect() });
    };
    let mut changes = Vec::new();
    let arrived = &call.message["params"]["arguments"];
    let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    let is_unchanged = is_same(arrived, &arguments) || (is_empty(arrived) && is_empty(&arguments));
    if !is_unchanged {
        changes.push(format!("the server got the arguments {arrived}, and the model wrote {arguments}"));
    }
    let seen = result_of(evidence, shown, 0);
    match (answer(sent, call), seen) {
        (Some(answer), Some(seen)) => changes.extend(result_changes(answer, &seen)),
        (_, None) if !is_whole(evidence) => {}
        (Some(_), None) => changes.push("its result did not come to the model".to_owned()),
        (None, _) => changes.push("the server did not answer the call".to_owned()),
    }
    Some(HostCall { arguments, arrived: true, changes })
}

/// The result of a call of a tool as the model got it, without what differs from run to run.
pub(crate) fn result_of(evidence: &HostEvidence<'_>, shown: &str, call: usize) -> Option<ShownResult> {
    // Each question has the results of those before it.
    let mut asked = evidence.outcome.asked.iter().rev();
    let mut result =
        asked.find_map(|asked| asked.results.iter().filter(|result| result.tool == shown).nth(call))?.clone();
    for pattern in &evidence.headless.redact {
        result.text = pattern.replace_all(&result.text, "").into_owned();
    }
    Some(result)
}

/// What the model does not get of a result as the server has sent it.
fn result_changes(answer: &Value, seen: &ShownResult) -> Vec<String> {
    let result = &answer["result"];
    let mut changes = Vec::new();
    // A text may come as a part of JSON.
    let has = |text: &str| {
        let quoted = Value::from(text).to_string();
        seen.text.contains(text) || seen.text.contains(quoted.trim_matches('"'))
    };
    for item in result["content"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = item["text"].as_str().unwrap_or_default().trim();
                let length = text.chars().count();
                match kept(text, &seen.text) {
                    _ if has(text) => {}
                    0 => changes.push("its text does not come to the model".to_owned()),
                    kept => changes.push(format!("its text is cut: {kept} of {length} characters come to the model")),
                }
            }
            kind @ ("image" | "audio") if !seen.media.iter().any(|it| it == kind) => {
                changes.push(format!("its {kind} does not come to the model"));
            }
            "resource_link" | "resource" => {
                let uri = item["uri"].as_str().or(item["resource"]["uri"].as_str()).unwrap_or_default();
                let text = item["resource"]["text"].as_str().unwrap_or(uri);
                if !has(uri) && !has(text) {
                    changes.push(format!("the resource {uri} does not come to the model"));
                }
            }
            _ => {}
        }
    }
    // A host may write JSON in another way, but not other values.
    if !has_text(result) && !scalars(&result["structuredContent"]).iter().all(|value| has(value)) {
        changes.push("its structured content does not come to the model".to_owned());
    }
    let error = answer["error"]["message"].as_str().filter(|message| !has(message));
    changes.extend(error.map(|_| "the message of its error does not come to the model".to_owned()));
    let texts = result["content"].as_array().into_iter().flatten().filter_map(|item| item["text"].as_str());
    let is_plain = texts.map(str::trim).any(|text| text == seen.text.trim());
    if result["isError"] == true && !seen.is_error && is_plain {
        changes.push("the model does not see that it is an error".to_owned());
    }
    changes
}

fn has_text(result: &Value) -> bool {
    result["content"].as_array().into_iter().flatten().any(|item| item["text"].is_string())
}

/// The texts, numbers and truth values in a value.
fn scalars(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().flat_map(scalars).collect(),
        Value::Object(members) => members.values().flat_map(scalars).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// What the host says of its failures.
fn printed(evidence: &HostEvidence<'_>) -> Vec<String> {
    let HostOutcome { output: [stdout, stderr], logs, .. } = evidence.outcome;
    let mut found: Vec<String> = Vec::new();
    for (number, pattern) in evidence.headless.failures.iter().enumerate() {
        let texts: Vec<&str> = match &pattern.from {
            FailureSource::Stdout => vec![stdout],
            FailureSource::Stderr => vec![stderr],
            FailureSource::File(_) => {
                logs.iter().filter(|(of, _)| *of == number).map(|(_, text)| text.as_str()).collect()
            }
        };
        found.extend(texts.iter().flat_map(|text| pattern.find(text)).map(|failure| sentence(&failure)));
    }
    found.dedup();
    found.truncate(PRINTED);
    found
}

fn sentence(failure: &Failure) -> String {
    let reason = failure.reason.as_deref().unwrap_or("no reason is given").trim();
    match (&failure.tool, &failure.server) {
        (Some(tool), _) => format!("it leaves out the tool {tool}: {reason}"),
        (None, Some(server)) => format!("it says of the server {server}: {reason}"),
        (None, None) => format!("it says: {reason}"),
    }
}

/// Why the host could not do its work.
fn error(evidence: &HostEvidence<'_>) -> Option<String> {
    let HostOutcome { output, end, asked, .. } = evidence.outcome;
    if evidence.headless.needs_account.iter().any(|pattern| output.iter().any(|text| pattern.is_match(text))) {
        return Some("it asks for a login".to_owned());
    }
    let last = output.iter().rev().filter_map(|text| text.lines().rfind(|line| !line.trim().is_empty())).next();
    let last = last.map(|line| format!("; its last line: {}", line.trim())).unwrap_or_default();
    match end {
        HostEnd::NeverAsked => Some(format!("it did not ask the model within the time for its start{last}")),
        HostEnd::TimedOut => Some("it did not end in time".to_owned()),
        HostEnd::Interrupted => Some("the run was interrupted".to_owned()),
        HostEnd::Exited(_) if asked.is_empty() => Some(format!("it ended without asking the model{last}")),
        HostEnd::Exited(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_client_configs::headless::headless_hosts;
    use rehearse_report::profile::Fit;
    use serde_json::json;

    use super::*;
    use crate::asked::ShownTool;

    /// A connection: messages of the client and of the server.
    fn connection_of(messages: &[(Direction, Value)]) -> Trace {
        let mut trace = Trace::default();
        for (direction, message) in messages {
            trace.push_frame(Duration::ZERO, *direction, message.to_string().into());
        }
        trace
    }

    /// What is said of a host that starts the server twice: the first process only lists, with the ids of the second.
    fn judged(end: HostEnd, has_call: bool, has_asked: bool) -> HostRun {
        use Direction::{ClientToServer as Up, ServerToClient as Down};
        let hello = || (Up, json!({ "id": 1, "method": "initialize", "params": { "clientInfo": { "name": "h" } } }));
        let welcome = || (Down, json!({ "id": 1, "result": { "protocolVersion": "2025-11-25" } }));
        let list = [
            hello(),
            welcome(),
            (Up, json!({ "id": 2, "method": "tools/list" })),
            (Down, json!({ "id": 2, "result": { "tools": [] } })),
        ];
        let call = [
            hello(),
            welcome(),
            (Up, json!({ "id": 2, "method": "tools/call", "params": { "name": "t", "arguments": {} } })),
            (Down, json!({ "id": 2, "method": "ping" })),
            (Down, json!({ "id": 2, "result": { "content": [{ "type": "text", "text": "fine" }] } })),
        ];
        let tool = ShownTool { name: "mcp__s__t".into(), description: None, schema: json!({ "type": "object" }) };
        let result = ShownResult { tool: tool.name.clone(), text: "other".into(), media: Vec::new(), is_error: false };
        let asked = Asked { tools: vec![tool], results: has_call.then_some(result).into_iter().collect() };
        let outcome = HostOutcome {
            traces: vec![connection_of(&list), connection_of(if has_call { &call } else { &call[..2] })],
            asked: if has_asked { vec![asked] } else { Vec::new() },
            asked_after: None,
            output: [String::new(), String::new()],
            logs: Vec::new(),
            tried_to_reach: Vec::new(),
            end,
            duration: Duration::ZERO,
        };
        let (_, _, headless) = headless_hosts().next().expect("a host");
        let walked = [WalkedTool { server: "s".into(), name: "t".into(), arguments: json!({}) }];
        let tools = [json!({ "name": "t", "inputSchema": { "type": "object" } })];
        let mut run = HostRun::new("h", "H");
        judge(&HostEvidence { headless, server: "s", tools: &tools, walked: &walked, outcome: &outcome }, &mut run);
        run
    }

    #[test]
    fn an_answer_is_that_of_the_own_connection() {
        let run = judged(HostEnd::Exited(Some(0)), true, true);
        let call = run.tools[0].call.as_ref().expect("a call");
        assert_eq!(call.changes, ["its text does not come to the model"]);
        assert_eq!(run.fit, Some(Fit::Degraded));
    }

    #[test]
    fn an_image_beside_a_result_is_no_sound() {
        let content = json!([{ "type": "image", "data": "" }, { "type": "audio", "data": "" }]);
        let seen = ShownResult { tool: "t".into(), text: String::new(), media: vec!["image".into()], is_error: false };
        let changes = result_changes(&json!({ "result": { "content": content } }), &seen);
        assert_eq!(changes, ["its audio does not come to the model"]);
    }

    #[test]
    fn structured_content_without_a_text_must_come_to_the_model() {
        let answer = json!({ "result": { "content": [], "structuredContent": { "depth": [12.5, "a \"b\""] } } });
        let seen = |text: &str| {
            let seen = ShownResult { tool: "t".into(), text: text.into(), media: Vec::new(), is_error: false };
            result_changes(&answer, &seen)
        };
        assert_eq!(seen(r#"depth: 12.5, "a \"b\"""#), [""; 0]);
        assert_eq!(seen("no output"), ["its structured content does not come to the model"]);
    }

    #[test]
    fn what_was_not_seen_is_no_fault() {
        let refused = judged(HostEnd::Exited(Some(0)), false, true);
        assert_eq!(
            (refused.fit, refused.tools[0].call.as_ref().map(|call| call.arrived)),
            (Some(Fit::Blocked), Some(false))
        );
        let late = judged(HostEnd::TimedOut, false, true);
        assert!(late.tools[0].call.is_none() && late.error.is_some(), "{late:?}");
        let silent = judged(HostEnd::NeverAsked, false, false);
        assert_eq!((silent.fit, silent.tools.len()), (None, 0));
    }
}
