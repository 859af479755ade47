//! JSON-RPC 2.0: envelopes, ids, errors, malformed input.

use std::{collections::HashSet, str};

use rehearse_protocol::{List, Transport, Version, names::NAME_HEADER};
use serde_json::{Value, json};

use super::Judge;
use super::common::{
    NOT_DUE, PAGE, answers_batch, cheap_request, error_code, is_alive_after, is_broken, is_due, is_integer,
    is_usually_answered, may_be_resumed, refused, shown, silence, survives,
};
use super::query::Query;
use crate::{
    Call, Case, CaseGroup, Evidence, HttpExchange, Judgement, Kind, Level, Material, Message,
    connection::as_other_type, shapes,
};

/// How long the message of an error may be.
const LONG_MESSAGE: usize = 300;
const LARGEST_ID: i64 = 9_007_199_254_740_991;
/// How deep the arrays of a message are.
const DEPTH: usize = 2000;
/// With bytes that are no letters in the code page of Windows: 81, 8D, 8F, 90 and 9D.
const UNICODE_ID: &str = "éÁÍÏÐÝ😀\u{2028}";
const UUID: &str = "6f1c1a4e-7f3a-4b6e-9c65-0f3f8a2d1b7c";
/// Texts that only a stack trace has.
const TRACES: [&str; 5] = ["Traceback (most recent call last)", "panicked at", "\n    at ", "goroutine 1 [", ".java:"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("rpc.envelope.version-field", version_field),
    ("rpc.envelope.single-object", single_object),
    ("rpc.envelope.utf8", utf8),
    ("rpc.envelope.result-xor-error", |e, j| result_xor_error(e.responses(), j)),
    ("rpc.envelope.result-object", |e, j| {
        let is_object = |it: &Message<'_>| it.result().is_some_and(Value::is_object);
        let results = e.responses().filter(|it| it.result().is_some());
        results.must(j, is_object, |it| format!("`result: {}`", shown(it.at("/result"))));
    }),
    ("rpc.envelope.no-mixed-kind", |e, j| {
        let is_pure =
            |it: &Message<'_>| it.value.get("method").is_none() || (it.result().is_none() && it.error().is_none());
        let all = e.received().filter(|it| it.value.is_object());
        all.must(j, is_pure, |_| "a `method` with a result or an error");
    }),
    ("rpc.id.echo-value", |e, j| {
        for connection in &e.connections {
            let sent = ids(connection.sent());
            // The body of a refusal is no response where no message was sent, as for a GET.
            let answers = |it: &&Message<'_>| {
                let http = it.exchange.and_then(|number| connection.exchanges.get(&number));
                http.is_none_or(|http| http.status.is_none_or(|status| status < 400) || http.method == "POST")
            };
            let received = connection.received();
            for response in received.filter(|it| it.kind == Kind::Response).filter(answers) {
                let Some(id) = response.id().filter(|id| !id.is_null()) else { continue };
                let is_known = sent.contains(&id.to_string());
                j.check(is_known, response, || format!("the id {}, which no request has", shown(id)));
            }
        }
    }),
    ("rpc.id.echo-type", |e, j| {
        // A response whose id has the digits of a request's, and the other type.
        succeeds(e, j, "lists/id-type");
        for call in e.calls().filter(|call| call.request.case.is_none_or(|case| !case.starts_with("lists/id-type"))) {
            let (Some(response), Some(id)) = (call.response, call.request.usable_id()) else { continue };
            let Some(own) = response.usable_id().filter(|own| own.is_string() != id.is_string()) else { continue };
            let digits = own.to_string();
            j.check_answer(digits != as_other_type(id), &call, || format!("the id {}", shown(own)));
        }
    }),
    ("rpc.id.falsy-accepted", |e, j| succeeds(e, j, "lists/id-falsy")),
    ("rpc.id.string-accepted", |e, j| succeeds(e, j, "lists/id-string")),
    ("rpc.id.large-integer", |e, j| succeeds(e, j, "lists/id-large")),
    ("rpc.id.concurrent-distinct", concurrent),
    ("rpc.id.one-response-only", |e, j| {
        for connection in &e.connections {
            let mut asked: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
            for message in &connection.messages {
                let Some(id) = message.id().filter(|id| !id.is_null()).map(Value::to_string) else { continue };
                let http = message.exchange.and_then(|number| connection.exchanges.get(&number));
                if http.is_some_and(HttpExchange::is_resumed) {
                    continue;
                }
                if !message.is_from_server() {
                    *asked.entry(id).or_default() += 1;
                } else if message.kind == Kind::Response
                    && let Some(open) = asked.get_mut(&id)
                {
                    j.check(*open > 0, message, || format!("a second response with the id {id}"));
                    *open = open.saturating_sub(1);
                }
            }
        }
    }),
    ("rpc.error.code-integer", |e, j| errors(e, j, "code", is_integer)),
    ("rpc.error.message-string", |e, j| errors(e, j, "message", Value::is_string)),
    ("rpc.error.message-one-sentence", |e, j| errors(e, j, "message", is_short)),
    ("rpc.error.no-stack-trace", |e, j| {
        for response in e.responses() {
            let Some(error) = response.error() else { continue };
            let mut texts = vec![error["message"].as_str().unwrap_or_default()];
            texts.extend(error["data"].as_str());
            texts.extend(error["data"]["stack"].as_str());
            let trace = texts.iter().flat_map(|text| TRACES.iter().find(|trace| text.contains(**trace))).next();
            j.check(trace.is_none(), response, || format!("{:?}", trace.copied().unwrap_or_default().trim()));
        }
    }),
    ("rpc.error.id-present", error_id),
    ("rpc.error.id-not-null", |e, j| {
        let all = e.responses().filter(|it| it.error().is_some() && it.id().is_none_or(Value::is_null));
        all.must(j, |it| it.id().is_none(), |_| "`id: null`");
    }),
    ("rpc.method.unknown-32601", |e, j| error_code(e, j, "bad-method/unknown", &[-32601])),
    ("rpc.method.unknown-no-crash", |e, j| survives(e, j, "bad-method/unknown")),
    ("rpc.method.case-sensitive", |e, j| error_code(e, j, "bad-method/case", &[-32601])),
    ("rpc.method.rpc-prefix", |e, j| error_code(e, j, "bad-method/rpc-prefix", &[-32601])),
    ("rpc.notify.never-answered", |e, j| {
        // Over a pipe any answer. Over HTTP a POST has a status, which other checks judge.
        silence(e, j, "quiet-window/unknown-notification");
        let plain = e.calls().filter(|call| call.request.kind == Kind::Notification && call.request.case.is_none());
        plain.filter(|call| call.http.is_none()).must_get(j, |call| call.response.is_none());
    }),
    ("rpc.notify.unknown-tolerated", |e, j| survives(e, j, "quiet-window/unknown-notification")),
    ("rpc.notify.server-no-id", |e, j| {
        let named = e.received().filter(|it| it.method().is_some_and(|method| method.starts_with("notifications/")));
        named.must(j, |it| it.id().is_none(), |it| format!("`id: {}`", shown(it.at("/id"))));
    }),
    ("rpc.notify.params-object", |e, j| {
        let has_check = |it: &Message<'_>| it.method().is_some_and(|method| shapes::has_check(e, method));
        let all = e.received().filter(|it| it.kind == Kind::Notification && !has_check(it));
        all.must(j, has_right_params, |it| format!("`params: {}`", shown(it.params())));
    }),
    ("rpc.request.server-id-nonnull", |e, j| {
        let is_right = |it: &Message<'_>| is_id(it.at("/id"));
        e.server_requests().must(j, is_right, |it| format!("`id: {}`", shown(it.at("/id"))));
    }),
    ("rpc.request.server-id-unique", |e, j| {
        for connection in &e.connections {
            let mut seen = HashSet::new();
            for request in connection.received().filter(|it| it.kind == Kind::Request) {
                let id = request.id().map(Value::to_string).unwrap_or_default();
                j.check(seen.insert(id.clone()), request, || format!("the id {id} again"));
            }
        }
    }),
    ("rpc.invalid.parse-error", |e, j| {
        for call in e.case("malformed/truncated") {
            let is_status = call.status().is_some_and(|status| (400..500).contains(&status));
            if call.is_answered() {
                j.check_call(call.error_code() == Some(-32700) || (is_status && call.response.is_none()), &call);
            } else {
                j.untested("the server ignored it");
            }
        }
    }),
    ("rpc.invalid.parse-survives", |e, j| survives(e, j, "malformed/truncated")),
    ("rpc.invalid.not-an-object", |e, j| refused(e, j, "malformed/no-object")),
    ("rpc.invalid.missing-jsonrpc", |e, j| refused(e, j, "malformed/no-jsonrpc")),
    ("rpc.invalid.wrong-version", |e, j| refused(e, j, "malformed/wrong-jsonrpc")),
    ("rpc.invalid.method-not-string", |e, j| refused(e, j, "malformed/method-number")),
    ("rpc.invalid.params-array", |e, j| refused(e, j, "malformed/params-array")),
    ("rpc.invalid.id-object", |e, j| refused(e, j, "malformed/id-object")),
    ("rpc.invalid.id-null-request", |e, j| e.case("malformed/id-null").must_get(j, |call| !call.has_result())),
    ("rpc.invalid.id-fraction", |e, j| survives(e, j, "malformed/id-fraction")),
    ("rpc.invalid.params-wrong-type-32602", |e, j| {
        // A name that is not a text has no `Mcp-Name`, so a modern server may refuse the header first.
        for list in [List::Tools, List::Resources, List::Prompts] {
            // That a list is declared and does not exist is a finding of its own.
            if e.calls_of(list.method()).any(|call| call.error_code() != Some(-32601)) {
                error_code(e, j, &format!("bad-params/{}", list.item_method()), &[-32602, -32020]);
            }
        }
        for violation in &mut j.violations {
            if violation.found == "a result" {
                violation.level = Some(Level::Must);
            }
        }
    }),
    ("rpc.extra.unknown-members-ignored", |e, j| succeeds(e, j, "lists/unknown-member")),
    ("rpc.extra.large-message", |e, j| survives(e, j, "malformed/large")),
    ("rpc.extra.deep-nesting", |e, j| survives(e, j, "malformed/deep")),
    ("rpc.extra.duplicate-keys", |e, j| survives(e, j, "malformed/duplicate-keys")),
    ("rpc.extra.unicode-roundtrip", |e, j| succeeds(e, j, "lists/id-unicode")),
    ("rpc.batch.receive", |e, j| {
        let is_http = e.transport == Transport::Http;
        batch(e, j, |answered| Some(answered == 2 || (is_http && answered > 0)));
    }),
    ("rpc.batch.responses-complete", |e, j| batch(e, j, |answered| (answered > 0).then_some(answered == 2))),
    ("rpc.batch.notifications-only-202", |e, j| {
        for (connection, http) in e.http_case("malformed/batch-notifications") {
            let (Some(status), Some(_)) = (http.status, http.response) else { continue };
            let is_empty = http.body.is_empty() && connection.messages_of(http).next().is_none();
            let holds = (status == 202 && is_empty) || status >= 400;
            let body = if is_empty { "" } else { " with a body" };
            j.check_at(holds, None, http.places(), || format!("HTTP {status}{body}"));
        }
    }),
    ("rpc.batch.initialize-not-in-batch", |e, j| {
        let calls = e.case("malformed/batch-initialize").filter(|call| call.method() == "initialize");
        calls.must_get(j, |call| !call.has_result());
    }),
    ("rpc.empty.http-body", |e, j| {
        let all = e.http_case("malformed/empty").filter(|(_, http)| http.status.is_some() && http.response.is_some());
        all.must(j, |http| http.status >= Some(400), |http| format!("HTTP {}", http.status.unwrap_or_default()));
    }),
    ("rpc.batch.rejected", |e, j| refused(e, j, "malformed/batch")),
    ("rpc.timeout.answers-every-request", every_request),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let (cheap, params) = cheap_request(material);
    let with_id = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": cheap, "params": params }).to_string();
    let valid = |name: &str, id: Value| Case::bytes(name, CaseGroup::Main, with_id(id));
    let bad =
        |name: &str, text: String| Case::bytes(format!("malformed/{name}"), CaseGroup::Malformed, text).unanswered();
    let without = |name: &str, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut message = json!({ "jsonrpc": "2.0", "id": format!("m-{name}"), "method": cheap, "params": params });
        if let Some(members) = message.as_object_mut() {
            change(members);
        }
        bad(name, message.to_string())
    };
    let set = |key: &'static str, value: Value| {
        move |members: &mut serde_json::Map<String, Value>| drop(members.insert(key.to_owned(), value.clone()))
    };
    let padding = "x".repeat(1 << 20);
    let mut cases = vec![
        valid("lists/id-type/number", json!(7_000_007)),
        // Other digits: a server that makes a number of them answers no other request.
        valid("lists/id-type/digits", json!("7000008")),
        valid("lists/id-type/text", json!("a-b")),
        valid("lists/id-falsy/zero", json!(0)),
        valid("lists/id-falsy/empty", json!("")),
        valid("lists/id-string", json!(UUID)),
        valid("lists/id-large", json!(LARGEST_ID)),
        valid("lists/id-unicode", json!(UNICODE_ID)),
        Case::request("lists/unknown-member", CaseGroup::Main, cheap, json!({ "x-rehearse": 1 })),
        Case::request("bad-method/unknown", CaseGroup::Negative, "rehearse/no-such-method", json!({})),
        Case::request("bad-method/case", CaseGroup::Negative, "Tools/List", json!({})),
        Case::request("bad-method/rpc-prefix", CaseGroup::Negative, "rpc.discover", json!({})),
    ];
    let name = "quiet-window/unknown-notification";
    cases.push(Case::notification(name, CaseGroup::Negative, "notifications/rehearse-unknown", json!({})));
    cases.extend(bad_params(material));
    cases.push(Case::request("lists/control", CaseGroup::Negative, cheap, json!({})));
    cases.extend([
        bad("no-object/number", "42".to_owned()),
        bad("no-object/string", r#""x""#.to_owned()),
        bad("no-object/null", "null".to_owned()),
        bad("no-object/empty-array", "[]".to_owned()),
        without("no-jsonrpc", &|members| drop(members.remove("jsonrpc"))),
        without("wrong-jsonrpc", &set("jsonrpc", json!("1.0"))),
        without("method-number", &set("method", json!(5))),
        without("params-array", &set("params", json!([]))),
        without("id-object", &set("id", json!({}))),
        without("id-null", &set("id", Value::Null)),
        without("id-fraction", &set("id", json!(7_000_009.5))),
        bad("deep", deep_notification()),
        bad("duplicate-keys", with_id(json!("m-twice")).replacen("\"method\"", "\"method\":\"ping\",\"method\"", 1)),
        without("large", &move |members| {
            members.insert("method".to_owned(), json!("rehearse/large"));
            members.insert("x".to_owned(), json!(padding));
        }),
    ]);
    let batch = format!("[{},{}]", with_id(json!("m-batch-1")), with_id(json!("m-batch-2")));
    cases.push(bad("batch", batch));
    if material.is_http() {
        cases.push(Case::http("malformed/empty", CaseGroup::Malformed, "POST").unanswered());
    }
    if material.version == Some(Version::V2025_03_26) {
        cases.extend(batches(material));
    }
    cases.push(bad("truncated", r#"{"jsonrpc":"2.0","id":1,"#.to_owned()));
    cases.push(Case::request("malformed/control", CaseGroup::Malformed, cheap, json!({})));
    cases
}

/// Nested deeper than most parsers allow. A notification, because the id of what is not parsed is unknown.
fn deep_notification() -> String {
    let (open, close) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/rehearse-deep","params":{{"x":{open}{close}}}}}"#)
}

/// Batches that only 2025-03-26 knows.
fn batches(material: &Material) -> Vec<Case> {
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "none" } });
    let initialize = json!({ "jsonrpc": "2.0", "id": "m-initialize", "method": "initialize", "params": {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": { "name": "rehearse-check", "version": "1" },
    } });
    let batch =
        |name: &str, group: CaseGroup, messages: Value| Case::bytes(name, group, messages.to_string()).unanswered();
    let mut cases = vec![batch("malformed/batch-initialize", CaseGroup::Fresh, json!([initialize]))];
    if material.is_http() {
        let name = "malformed/batch-notifications";
        cases.push(batch(name, CaseGroup::Malformed, json!([cancelled, cancelled])));
    }
    cases
}

fn bad_params(material: &Material) -> Vec<Case> {
    let all = [
        ("tools", "tools/call", json!({ "name": 5 })),
        ("resources", "resources/read", json!({})),
        ("prompts", "prompts/get", json!({})),
    ];
    let declared = all.into_iter().filter(|(capability, ..)| material.declares(capability));
    declared
        .map(|(_, method, params)| {
            // Over modern HTTP the missing header would be refused first.
            let case = Case::request(format!("bad-params/{method}"), CaseGroup::Negative, method, params);
            if material.is_modern() { case.header(NAME_HEADER, "5") } else { case }
        })
        .collect()
}

pub(super) fn result_xor_error<'e, 't: 'e>(responses: impl Iterator<Item = &'e Message<'t>>, j: &mut Judgement) {
    let found = |it: &Message<'_>| if it.result().is_some() { "both" } else { "neither" };
    responses.must(j, |it| it.result().is_some() != it.error().is_some(), found);
}

pub(super) fn version_field(e: &Evidence<'_>, j: &mut Judgement) {
    for message in e.own().filter(|it| it.value.is_object()) {
        let version = message.value.get("jsonrpc");
        j.check(version.is_some_and(|version| version == "2.0"), message, || match version {
            Some(version) => format!("`jsonrpc: {}`", shown(version)),
            None => "no `jsonrpc`".to_owned(),
        });
    }
}

pub(super) fn single_object(e: &Evidence<'_>, j: &mut Judgement) {
    e.own().filter(|it| !it.is_in_batch && !it.value.is_null()).filter(|message| !answers_batch(e, message)).must(
        j,
        |message| message.value.is_object(),
        |_| "an array or a single value",
    );
}

pub(super) fn utf8(e: &Evidence<'_>, j: &mut Judgement) {
    let messages = e.own().filter(|it| !it.is_in_batch);
    messages.must(j, |message| str::from_utf8(message.bytes).is_ok(), |_| "bytes that are not UTF-8");
}

fn ids<'e, 't>(messages: impl Iterator<Item = &'e Message<'t>>) -> HashSet<String>
where
    't: 'e,
{
    messages.filter_map(|it| it.id().filter(|id| !id.is_null())).flat_map(likenesses).collect()
}

/// What a server may make of an id: another type, which is another check, and a whole number of a fraction, which is no
/// valid id.
fn likenesses(id: &Value) -> Vec<String> {
    let mut all = vec![id.to_string(), as_other_type(id)];
    if let Some(number) = id.as_f64().filter(|number| number.fract() != 0.0) {
        all.extend([number.floor(), number.ceil()].map(|number| format!("{number:.0}")));
    }
    all
}

fn succeeds(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in e.case(case) {
        if !call.is_answered() {
            j.untested("the server did not answer");
        } else if !call.is_refused_elsewhere() {
            let is_same = call.response.is_some_and(|response| response.id() == call.request.id());
            j.check_answer(call.has_result() && is_same, &call, || match call.response.and_then(Message::id) {
                Some(id) if !is_same => format!("the id {}", shown(id)),
                _ => call.answer_text(),
            });
        }
    }
}

/// Requests that were sent while an earlier one of the same connection was still open.
fn concurrent(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        // Broken input and a cancelled request need no answer, a subscription has none until it ends, a batch may be refused as a whole,
        // and the status of HTTP refuses a request as well.
        let is_kept = |call: &crate::Call<'_>| {
            !call.request.is_in_batch
                && call.method() != "subscriptions/listen"
                && !is_broken(call)
                && call.request.case.is_none_or(|case| !case.starts_with("cancel-inflight/"))
                && is_due(e, connection, call)
                && !may_be_resumed(e, call)
                && !(call.response.is_none() && call.status().is_some_and(|status| status >= 400))
        };
        let calls = connection.calls().filter(|call| call.request.kind == Kind::Request && is_kept(call));
        for pair in calls.collect::<Vec<_>>().windows(2) {
            let [first, second] = pair else { continue };
            let is_kept = second.response.is_some();
            // That a method has no answer at all is another check.
            if first.response.is_some_and(|response| response.place > second.request.place)
                && (is_kept || is_usually_answered(e, second))
            {
                j.check_call(is_kept, second);
            }
        }
    }
}

pub(super) fn errors(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for response in e.own().filter(|it| it.kind == Kind::Response) {
        let Some(error) = response.error() else { continue };
        let value = error.get(key);
        j.check(value.is_some_and(&holds), response, || match value {
            Some(value) => format!("`{key}: {}`", shown(value)),
            None => format!("no `{key}`"),
        });
    }
}

fn is_short(message: &Value) -> bool {
    message.as_str().is_none_or(|text| !text.trim_end().contains('\n') && text.chars().count() <= LONG_MESSAGE)
}

/// Codes of errors that a server sends only if it has read the message.
const READ: [i64; 4] = [-32601, -32602, -32002, -32021];
/// Cases that a server may refuse before it reads the message.
const REFUSED_UNREAD: [&str; 11] = [
    "auth",
    "earlier",
    "era",
    "headers",
    "malformed",
    "meta-negative",
    "origin",
    "param-headers",
    "session",
    "shape",
    "version",
];

/// Whether a message is a request that nothing is wrong with but its method and the values of its params.
fn is_well_formed(request: &Message<'_>) -> bool {
    request.kind == Kind::Request
        && request.at("/jsonrpc") == "2.0"
        && request.method().is_some()
        && is_id(request.at("/id"))
        && has_right_params(request)
}

/// Whether a value can be an id: a string, or a number without a fraction.
pub(super) fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// Whether the params are an object, or absent.
pub(super) fn has_right_params(message: &Message<'_>) -> bool {
    message.value.get("params").is_none_or(Value::is_object)
}

/// An error without an id that answers a valid request.
fn error_id(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        for call in connection.calls().filter(|call| is_well_formed(call.request)) {
            let is_read = |code: Option<i64>| code.is_some_and(|code| READ.contains(&code));
            let anonymous = |it: &&Message<'_>| it.error().is_some() && it.usable_id().is_none();
            let error = match call.http {
                Some(http) => connection.messages_of(http).find(anonymous),
                None => call.response.filter(anonymous),
            };
            let is_refused = call.request.case.is_some_and(|case| REFUSED_UNREAD.iter().any(|it| case.starts_with(it)));
            // A status such as 401 or 403 may have an error of its own.
            let counts = |error: &Message<'_>| match call.status() {
                Some(401 | 403 | 500..) => false,
                None | Some(200) if call.request.case.is_none() => true,
                _ => is_read(error.error_code()) && !is_refused,
            };
            match (error, call.response) {
                (Some(error), _) if counts(error) => {
                    let places = vec![call.request.place, error.place];
                    j.check_at(false, Some(call.method()), places, || "an error without an id");
                }
                (None, Some(response)) => j.check(true, response, String::new),
                _ => {}
            }
        }
    }
}

/// Checks how many of the two requests in a batch were answered.
fn batch(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(usize) -> Option<bool>) {
    for connection in &e.connections {
        for call in
            connection.calls().filter(|it| it.request.case == Some("malformed/batch") && it.request.kind == Kind::Batch)
        {
            let answered = connection.messages.iter().filter(|it| {
                it.is_from_server() && it.id().and_then(Value::as_str).is_some_and(|id| id.starts_with("m-batch-"))
            });
            let answered = answered.count();
            if call.is_page() {
                j.untested(PAGE);
                continue;
            }
            if call.is_pending() && answered < 2 {
                j.untested(NOT_DUE);
                continue;
            }
            let Some(holds) = holds(answered) else { continue };
            j.check_answer(holds, &call, || format!("{answered} answers to 2 requests; {}", call.answer_text()));
        }
    }
}

/// Cases that a server must answer, if only with an error.
const ANSWERED: [&str; 5] = ["bad-cursor/", "bad-method/", "bad-params/", "lists/", "unknown-names/"];

fn every_request(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        if connection.ended_by_server() {
            continue;
        }
        let (is_starting, mut is_deaf) = (e.is_starting(connection), false);
        for call in connection.calls().filter(|call| is_well_formed(call.request) && !call.request.is_in_batch) {
            let is_long = matches!(call.method(), "subscriptions/listen" | "tasks/result" | "tools/call");
            let counts = match call.request.case {
                None => !is_long,
                Some(case) => {
                    ANSWERED.iter().any(|it| case.starts_with(it)) && !(is_long && case.starts_with("lists/"))
                }
            };
            // A case may be refused by a status.
            let is_answered = call.is_served() || (call.request.case.is_some() && call.is_answered());
            let subject = Some(call.method());
            if !counts {
                continue;
            } else if is_answered {
                j.check_at(true, subject, call.places(), String::new);
            } else if call.is_lost() && e.calls().any(|it| it.method() == call.method() && it.is_served()) {
                j.check_at(false, subject, call.places(), || "the end of the connection before the answer");
                j.at_level(Level::Info);
            } else if is_starting {
                j.untested("a process did not start in time");
            } else if !is_due(e, connection, &call) {
                j.untested(NOT_DUE);
            } else if is_alive_after(connection, &call) {
                let waited = connection.waited(call.request).as_secs();
                let found = || format!("no answer for {waited} s, though later requests were answered");
                j.check_at(false, subject, call.places(), found);
                j.at_level_if(!needs_no_backend(&call), Level::Should);
            } else if !std::mem::replace(&mut is_deaf, true) {
                j.check_at(false, subject, call.places(), || "no answer to it and to all that came after it");
            }
        }
    }
}

/// Whether the server answers at once or never: nothing else has to work for the answer.
fn needs_no_backend(call: &Call<'_>) -> bool {
    let case = call.request.case.unwrap_or_default();
    call.method() == "ping" || case.starts_with("bad-method/") || case.starts_with("bad-params/")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue, StatusCode, header::CONTENT_TYPE};
    use rehearse_protocol::{Direction, Event, EventKind, Frame, Trace, Transport};

    use super::*;
    use crate::{CheckVerdict, Facts, checks};

    /// The trace of requests over HTTP: the case, the message, and what came: `lost`, `begun` for the head of an event stream,
    /// or the answer.
    fn trace(exchanges: &[(Option<&str>, &str, &str)]) -> Trace {
        let mut trace = Trace::default();
        for (number, (case, sent, came)) in (1..).zip(exchanges) {
            let frame =
                |direction, text: &str| EventKind::Frame(Frame::new(direction, Duration::ZERO, text.to_owned().into()));
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            let head = EventKind::HttpResponse { status: StatusCode::OK, headers };
            let request = EventKind::HttpRequest {
                method: http::Method::POST,
                target: "/mcp".to_owned(),
                headers: HeaderMap::new(),
            };
            let mut kinds = vec![request, frame(Direction::ClientToServer, sent)];
            kinds.splice(0..0, case.map(|case| EventKind::Case(case.into())));
            match *came {
                "lost" => kinds.push(EventKind::HttpEnd { is_whole: false }),
                "begun" => kinds.push(head),
                answer => {
                    let end = EventKind::HttpEnd { is_whole: true };
                    kinds.extend([head, frame(Direction::ServerToClient, answer), end]);
                }
            }
            for kind in kinds {
                trace.push_event(Event { at: Duration::ZERO, exchange: Some(number), kind });
            }
        }
        trace
    }

    /// The verdict of a check, and the levels of its violations.
    fn judged(
        id: &str,
        version: Version,
        exchanges: &[(Option<&str>, &str, &str)],
    ) -> (CheckVerdict, Vec<Option<Level>>) {
        let trace = trace(exchanges);
        let evidence = Evidence::new(&[&trace], version, Transport::Http, Facts::default());
        let outcome =
            checks().iter().find(|check| check.id == id).map(|check| check.judge(&evidence)).expect("the check");
        (outcome.verdict, outcome.judgement.violations.iter().map(|it| it.level).collect())
    }

    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    const AGAIN: (Option<&str>, &str, &str) = (
        None,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#,
    );

    #[test]
    fn a_connection_that_is_lost_is_no_silence_if_others_of_the_method_were_answered() {
        let levels = |exchanges: &[_]| judged("rpc.timeout.answers-every-request", Version::V2025_11_25, exchanges).1;
        assert_eq!(levels(&[(None, LIST, "lost"), AGAIN]), [Some(Level::Info)]);
        assert_eq!(levels(&[(None, LIST, "lost")]), [None]);
    }

    #[test]
    fn a_stream_that_has_only_begun_is_no_answer_to_a_batch() {
        let batch = r#"[{"jsonrpc":"2.0","id":"m-batch-1","method":"ping"},{"jsonrpc":"2.0","id":"m-batch-2","method":"ping"}]"#;
        let judged =
            |came| judged("rpc.batch.receive", Version::V2025_03_26, &[(Some("malformed/batch"), batch, came)]);
        assert_eq!(judged("begun"), (CheckVerdict::NotTested, vec![]));
        assert_eq!(judged("{}").0, CheckVerdict::Fail);
    }
}
