//! A client that can be asked: what tools, prompts and resources ask for, and what they do with each kind of answer.

use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_protocol::{
    Era, Trace, Transport, Version,
    names::{APP_MIME, APPS_EXTENSION, INPUT_METHODS, META_CLIENT_CAPABILITIES, TASKS_EXTENSION},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{apps, handshake, tasks};
use crate::{connection::ProbeConnection, prober::Prober, replies::Replies};

/// No further tool is called after this time.
const LONGEST: Duration = Duration::from_secs(5);
/// How many prompts are got, and how many resources are read.
const USED_ITEMS: usize = 8;

/// A request whose answer took questions.
#[derive(Clone)]
struct Asking {
    method: &'static str,
    params: Value,
    /// The methods that the server asked with.
    asked: Vec<String>,
    /// Whether other answers may be tried.
    is_varied: bool,
}

/// Whether another probe's session serves as well: in the modern era each request says what the client can be asked, and
/// a session of its own would cost a process.
pub(super) fn shares_session(prober: &Prober<'_>) -> bool {
    prober.starts_processes() && prober.version.era() == Era::Modern
}

/// Asks on a session of its own.
pub(super) async fn asking(prober: &Prober<'_>) -> Vec<Trace> {
    if shares_session(prober) {
        return Vec::new();
    }
    let mut capabilities = capabilities(prober.version);
    let has_tasks = prober.starts_processes() && tasks::has_tasks(prober);
    if has_tasks {
        capabilities["extensions"][TASKS_EXTENSION] = json!({});
    }
    let (connection, mut traces) = match prober.version.era() {
        Era::Modern => (prober.open_session_as(capabilities).await, Vec::new()),
        Era::Legacy => Box::pin(handshake::hold(prober, capabilities)).await,
    };
    let Some(mut connection) = connection else { return traces };
    traces.extend(Box::pin(ask(prober, &mut connection)).await);
    if has_tasks && !connection.is_over() {
        tasks::follow_tasks(prober, &mut connection).await;
    }
    traces.push(connection.close().await);
    traces
}

/// Calls, gets and reads as a client that can be asked everything; then answers the first that asked in other ways.
/// Returns the traces of other connections.
pub(super) async fn ask(prober: &Prober<'_>, connection: &mut ProbeConnection) -> Vec<Trace> {
    connection.set_capabilities(capabilities(prober.version));
    connection.open_stream().await;
    connection.reply_with(Replies::Accept);
    let mut found: Vec<Asking> = Vec::new();
    let end = Instant::now() + LONGEST;
    for (name, method, params) in requests(prober) {
        if connection.is_over() {
            break;
        }
        if method == "tools/call" && (Instant::now() >= end || !connection.has_room()) {
            continue;
        }
        let from = connection.wire().recorder().end();
        connection.complete(&Case::request(name, CaseGroup::Calls, method, params.clone())).await;
        let asked = asked_since(connection, from);
        if !asked.is_empty() {
            let prompt = || prober.material.varied_prompts.iter().any(|prompt| prompt["name"] == params["name"]);
            let is_varied = method != "prompts/get" || prompt();
            found.push(Asking { method, params, asked, is_varied });
        }
    }
    apps::apps(prober, connection).await;
    let mut traces = Vec::new();
    if prober.version.era() == Era::Modern {
        let any = found.iter().find(|asking| asking.is_varied);
        if let Some(first) = first(&found, "elicitation/create").or(any) {
            vary_retry(connection, first, &found).await;
            traces.extend(retry_elsewhere(prober, connection, first).await);
        }
        ask_less_of_each(connection, &found).await;
    } else {
        vary_reply(connection, &found, &prober.material).await;
        traces.extend(Box::pin(ask_less(prober, &found)).await);
    }
    traces
}

/// What a client of this version can declare.
fn capabilities(version: Version) -> Value {
    let extensions = json!({ APPS_EXTENSION: { "mimeTypes": [APP_MIME] } });
    let mut all = json!({ "sampling": {}, "roots": { "listChanged": true }, "extensions": extensions });
    if version >= Version::V2025_06_18 {
        all["elicitation"] = json!({});
    }
    if version >= Version::V2025_11_25 {
        all["elicitation"] = json!({ "form": {}, "url": {} });
        all["sampling"] = json!({ "tools": {}, "context": {} });
    }
    if version.era() == Era::Modern {
        all["roots"] = json!({});
    }
    all
}

/// What a client declares that can be asked less: no roots, no pages, no tools in sampling.
fn less(version: Version) -> Value {
    let mut less = json!({ "sampling": {} });
    if version >= Version::V2025_06_18 {
        less["elicitation"] = json!({});
    }
    less
}

/// The requests on which a server may ask, each with its name as a case: a prompt or a resource may be of no use to a
/// client that cannot be asked.
fn requests(prober: &Prober<'_>) -> Vec<(&'static str, &'static str, Value)> {
    let Prober { tools, material, .. } = prober;
    let calls = tools.iter().map(|(name, arguments)| ("", "tools/call", Material::call_params(name, arguments)));
    let prompts = material.prompts.iter().filter(|it| it["name"].is_string()).map(|prompt| {
        let arguments: serde_json::Map<_, _> = prompt["arguments"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|argument| argument["required"] == true)
            .filter_map(|argument| Some((argument["name"].as_str()?.to_owned(), json!("rehearse"))))
            .collect();
        ("asking/prompt", "prompts/get", json!({ "name": prompt["name"], "arguments": arguments }))
    });
    let resources = material.resources.iter().filter(|it| it["uri"].is_string());
    let reads = resources.map(|resource| ("asking/resource", "resources/read", json!({ "uri": resource["uri"] })));
    calls.chain(prompts.take(USED_ITEMS)).chain(reads.take(USED_ITEMS)).collect()
}

/// The first request that may be varied on which the server asked with a method.
fn first<'a>(found: &'a [Asking], method: &str) -> Option<&'a Asking> {
    found.iter().find(|asking| asking.is_varied && asking.asked.iter().any(|asked| asked == method))
}

/// The methods that the server asked with: in requests of its own, or in results.
fn asked_since(connection: &ProbeConnection, from: usize) -> Vec<String> {
    let frames = connection.wire().recorder().since(from);
    let messages = frames.iter().filter_map(|frame| serde_json::from_slice::<Value>(&frame.bytes).ok());
    let methods = messages.flat_map(|message| {
        let input = message["result"]["inputRequests"].as_object().into_iter().flatten();
        let input: Vec<_> = input.map(|(_, request)| request["method"].clone()).collect();
        [message["method"].clone()].into_iter().chain(input)
    });
    methods.filter_map(|it| it.as_str().filter(|it| INPUT_METHODS.contains(it)).map(ToOwned::to_owned)).collect()
}

/// Modern: sends the request again, each time with another retry.
async fn vary_retry(connection: &mut ProbeConnection, first: &Asking, found: &[Asking]) {
    let valid = |result: &Value| Replies::Accept.retry(&first.params, result);
    let with = |result: &Value, change: &dyn Fn(&mut Value)| {
        let mut retry = valid(result)?;
        change(&mut retry);
        Some(retry)
    };
    let set_all = |answer: Value| {
        move |retry: &mut Value| {
            let answers = retry["inputResponses"].as_object_mut().into_iter().flatten();
            answers.for_each(|(_, it)| *it = answer.clone());
        }
    };
    retry(connection, first, "missing", |it| with(it, &|retry| retry["inputResponses"] = json!({}))).await;
    let extra = json!({ "action": "accept", "content": {} });
    retry(connection, first, "extra", |it| {
        with(it, &|retry| retry["inputResponses"]["rehearse-extra"] = extra.clone())
    })
    .await;
    retry(connection, first, "invalid/null", |it| with(it, &set_all(Value::Null))).await;
    retry(connection, first, "invalid/number", |it| with(it, &set_all(json!(12345)))).await;
    retry(connection, first, "invalid/action", |it| with(it, &set_all(json!({ "action": "rehearse" })))).await;
    retry(connection, first, "schema", |it| Replies::Invalid.retry(&first.params, it)).await;
    retry(connection, first, "decline", |it| Replies::Decline.retry(&first.params, it)).await;
    retry(connection, first, "cancel", |it| Replies::Cancel.retry(&first.params, it)).await;
    type Change = fn(&str) -> String;
    let changes: [(&str, Change); 3] = [
        ("tampered/changed", changed),
        ("tampered/longer", |state| format!("{state}AA")),
        ("tampered/shorter", |state| state.chars().take(state.chars().count() / 2).collect()),
    ];
    for (name, change) in changes {
        let changed = |it: &Value| {
            let state = change(it["requestState"].as_str()?);
            with(it, &|retry| retry["requestState"] = json!(state))
        };
        retry(connection, first, name, changed).await;
    }
    let other = found.iter().find(|it| it.is_varied && it.params != first.params);
    if let Some(other) = other.filter(|it| it.method == first.method) {
        retry(connection, first, "other-request", |it| {
            it.get("requestState")?;
            Replies::Accept.retry(&other.params, it)
        })
        .await;
    }
    connection.complete(&Case::request("asking/again", CaseGroup::Calls, first.method, first.params.clone())).await;
}

/// Modern: the same requests of a client that can be asked less.
async fn ask_less_of_each(connection: &mut ProbeConnection, found: &[Asking]) {
    for asking in found {
        let case = Case::request("asking/less", CaseGroup::Calls, asking.method, asking.params.clone());
        connection.send(&case.meta(META_CLIENT_CAPABILITIES, Some(less(connection.version())))).await;
    }
}

/// Another text of the same length: one character in its middle differs.
fn changed(state: &str) -> String {
    let middle = state.chars().count() / 2;
    let change = |(at, it): (usize, char)| match it {
        _ if at != middle => it,
        'A' => 'B',
        _ => 'A',
    };
    state.chars().enumerate().map(change).collect()
}

/// Sends the request, and once more as a case with what `change` makes of the result.
async fn retry(
    connection: &mut ProbeConnection,
    asking: &Asking,
    name: &str,
    change: impl Fn(&Value) -> Option<Value>,
) {
    if connection.is_over() {
        return;
    }
    let answer = connection.request(asking.method, asking.params.clone()).await;
    if let Some(params) = answer.result().and_then(change) {
        connection.send(&Case::request(format!("asking/{name}"), CaseGroup::Calls, asking.method, params)).await;
    }
}

/// Modern: asks on one connection, and retries on another.
async fn retry_elsewhere(prober: &Prober<'_>, connection: &mut ProbeConnection, first: &Asking) -> Option<Trace> {
    if prober.transport() != Transport::Http || connection.is_over() {
        return None;
    }
    let answer = connection.request(first.method, first.params.clone()).await;
    let params = Replies::Accept.retry(&first.params, answer.result()?)?;
    let mut other = prober.open().await?.with_capabilities(capabilities(prober.version));
    other.send(&Case::request("asking/elsewhere", CaseGroup::Calls, first.method, params)).await;
    Some(other.close().await)
}

/// Legacy: sends the request again, each time with another reply to what the server asks.
async fn vary_reply(connection: &mut ProbeConnection, found: &[Asking], material: &Material) {
    let variations = [
        ("elicitation/create", "asking/decline", Replies::Decline),
        ("elicitation/create", "asking/cancel", Replies::Cancel),
        ("elicitation/create", "asking/schema", Replies::Invalid),
        ("elicitation/create", "asking/error/elicitation", Replies::Error),
        ("sampling/createMessage", "asking/error/sampling", Replies::Error),
        ("roots/list", "asking/error/roots", Replies::Error),
    ];
    for (method, name, replies) in variations {
        let Some(asking) = first(found, method).filter(|_| !connection.is_over()) else { continue };
        connection.reply_with(replies);
        connection.send(&Case::request(name, CaseGroup::Calls, asking.method, asking.params.clone())).await;
        connection.reply_with(Replies::Accept);
    }
    let changed = "notifications/roots/list_changed";
    connection.send(&Case::notification("asking/roots-changed", CaseGroup::Calls, changed, Value::Null)).await;
    let bogus = json!({ "jsonrpc": "2.0", "id": "rehearse-none", "result": {} });
    connection.send(&Case::bytes("asking/bogus-response", CaseGroup::Calls, bogus.to_string()).unanswered()).await;
    connection.request(material.served_list().unwrap_or("ping"), json!({})).await;
}

/// Legacy: the same requests of a client that can be asked less.
async fn ask_less(prober: &Prober<'_>, found: &[Asking]) -> Vec<Trace> {
    let (connection, mut traces) = match handshake::asks_for_unknown(prober) {
        true => Box::pin(handshake::ask_for(prober, "negotiate/1999", "1999-01-01", less(prober.version))).await,
        false if found.is_empty() => return Vec::new(),
        false => (prober.open_session_as(less(prober.version)).await, Vec::new()),
    };
    let Some(mut connection) = connection else { return traces };
    if !found.is_empty() {
        connection.open_stream().await;
        connection.reply_with(Replies::Accept);
    }
    for asking in found {
        connection.request(asking.method, asking.params.clone()).await;
    }
    traces.push(connection.close().await);
    traces
}
