//! What the judges of several areas need.

use rehearse_document::text::shortened;
use rehearse_protocol::{List, Version, meta};
use serde_json::{Value, json};

use super::query::{Calls, Parts, Query, elements};
pub(super) use crate::silence::{NOT_DUE, is_alive_after, is_due};
use crate::{Ask, Call, Connection, EventRef, Evidence, HttpExchange, Judgement, Material, Message, case::is_case};

/// The member with the items of a list, and the member that names an item.
pub(super) fn keys(method: &str) -> (&'static str, &'static str) {
    List::of_method(method).map_or(("", ""), |list| (list.member(), list.key()))
}

/// The pages of one reading of a list, in order.
pub(super) struct Reading<'e> {
    pub(super) pages: Vec<(Call<'e>, &'e Value)>,
}

/// Every reading of a list: a request without a cursor, and those that follow its cursors.
pub(super) fn readings<'e>(evidence: &'e Evidence<'_>, method: &str) -> Vec<Reading<'e>> {
    let mut readings: Vec<Reading<'e>> = Vec::new();
    for connection in &evidence.connections {
        let mut current: Option<Reading<'e>> = None;
        for call in connection.calls().filter(|call| call.method() == method && call.request.case.is_none()) {
            let Some(result) = call.result() else { continue };
            match (&mut current, call.request.params().get("cursor").filter(|it| !it.is_null())) {
                (Some(reading), Some(_)) => reading.pages.push((call, result)),
                (_, None) => readings.extend(current.replace(Reading { pages: vec![(call, result)] })),
                (None, Some(_)) => {}
            }
        }
        readings.extend(current);
    }
    readings
}

/// Every result that is not an answer to a case.
pub(super) fn results<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.calls().plain().filter_map(|call| Some((call, call.result()?)))
}

/// What a server declares in normal work when it is discovered.
pub(super) fn capabilities<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.results_of("server/discover").plain().at("capabilities")
}

/// The text of a value in a report.
pub(crate) fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 80)
}

/// The text of a member in a report.
pub(super) fn keyed(key: &str) -> impl Fn(&Value) -> String {
    move |value| format!("`{key}: {}`", shown(value))
}

/// Checks each case with the error code that it must get. One without an answer is no violation of it.
pub(super) fn error_code(e: &Evidence<'_>, j: &mut Judgement, case: &str, codes: &[i64]) {
    for call in e.case(case) {
        if !call.is_answered() {
            j.untested("the server did not answer");
        } else if call.is_page() {
            j.untested(PAGE);
        } else if let Some(excuse) = excuse(&call).filter(|_| fails_plainly(e, &call)) {
            j.untested(excuse);
        } else if !call.is_refused_elsewhere() {
            j.check_code(codes, &call);
        }
    }
}

/// Whether a message of the server is an array that answers a batch. From 2025-06-18 on no client may send one (basic:
/// "MUST be a single JSON-RPC request, notification, or response"), so that the text says nothing of such an answer.
pub(super) fn answers_batch(evidence: &Evidence<'_>, message: &Message<'_>) -> bool {
    let (Some(answers), Some(connection)) = (message.value.as_array(), connection(evidence, message.place)) else {
        return false;
    };
    let is_earlier = |it: &&Message<'_>| !it.is_from_server() && it.place < message.place;
    let sent = || connection.messages.iter().filter(is_earlier);
    let ids: Vec<_> = sent().filter(|it| it.is_in_batch).filter_map(Message::id).collect();
    let is_answer = |it: &Value| it.get("id").is_some_and(|id| id.is_null() || ids.contains(&id));
    // Over HTTP also an empty one, to an empty one.
    let is_asked = sent().any(|it| it.value.is_array() && it.exchange == message.exchange);
    message.is_from_server() && answers.iter().all(is_answer) && (is_asked || !answers.is_empty())
}

/// Why an error says nothing about a request that is valid; `None` if the code is about the request.
pub(super) fn excuse(call: &Call<'_>) -> Option<&'static str> {
    match call.error_code()? {
        -32700 | -32602..=-32600 | -32002 | -32020 | -32022 => None,
        // 2026-07-28, basic#capabilities: what a server must answer that needs such a client.
        -32021 => Some(NEEDS_CAPABILITY),
        _ => Some("the server failed for a reason of its own, also in normal work"),
    }
}

const NEEDS_CAPABILITY: &str = "the server needs a client with a capability that the prober does not declare";

/// Why an error says nothing about a valid request: as [`excuse`], or because the same works for a client that can be asked.
/// Before 2026-07-28 no code says so.
fn excuse_of_plain(evidence: &Evidence<'_>, call: &Call<'_>) -> Option<&'static str> {
    let asked = || evidence.case("asking/prompt").chain(evidence.case("asking/resource"));
    let asked_any = asked().next().is_some();
    let asked = asked();
    let mut works = asked.filter(|it| it.method() == call.method() && it.result().is_some());
    let is_same =
        |it: Call<'_>| ["name", "uri"].iter().all(|key| it.request.params()[key] == call.request.params()[key]);
    // Before 2025-06-18 no client can be asked for input: a server that needs one refuses a request that is in order. In a
    // version that is tried briefly, none was.
    let is_too_old = evidence.version < Version::V2025_06_18 || !asked_any;
    let is_too_old = is_too_old && call.error_code() == Some(-32600);
    // A server that asks a client which cannot be asked may pass its refusal on.
    let has_asked = connection(evidence, call.request.place).is_some_and(|it| {
        let is_refused = |ask: &Ask<'_>| ask.responses.iter().any(|answer| answer.error().is_some());
        it.asks().any(|ask| is_refused(&ask) && it.on_the_way(call).any(|on| on.place == ask.request.place))
    });
    let mut is_excused = || is_too_old || (call.has_error() && (has_asked || works.any(is_same)));
    excuse(call).or_else(|| is_excused().then_some(NEEDS_CAPABILITY))
}

/// Whether plain requests failed of which a case is a variation: those for the same name or URI, else all of the method.
pub(super) fn fails_plainly(evidence: &Evidence<'_>, call: &Call<'_>) -> bool {
    let plain = || evidence.calls_of(call.method()).plain().responded();
    let is_same = |it: &Call<'_>| {
        let mut named = ["/params/name", "/params/uri"].iter().map(|key| (call.request.at(key), it.request.at(key)));
        named.any(|(wanted, found)| !wanted.is_null() && wanted == found)
    };
    let same: Vec<_> = plain().filter(is_same).collect();
    let plain = if same.is_empty() { plain().collect() } else { same };
    !plain.is_empty() && plain.iter().all(|it| it.result().is_none())
}

/// Checks that plain requests have results, unless an error is about something else.
pub(super) fn each_works<'e>(
    e: &Evidence<'_>,
    j: &mut Judgement,
    calls: impl Iterator<Item = Call<'e>>,
    subject: impl Fn(&Call<'e>) -> Option<&'e str>,
) {
    for call in calls.responded() {
        match excuse_of_plain(e, &call) {
            Some(excuse) => j.untested(excuse),
            None => j.check_at(call.has_result(), subject(&call), call.places(), || call.answer_text()),
        }
    }
}

/// Whether the stream of a tool's answer was closed early, and may be resumed: the client learns the answer then. In
/// older versions that is no good, and has a check of its own.
pub(super) fn may_be_resumed(evidence: &Evidence<'_>, call: &Call<'_>) -> bool {
    !evidence.is_modern() && call.response.is_none() && call.http.is_some_and(HttpExchange::is_stream)
}

/// Checks that nothing answers a notification: silence, or over HTTP any status without a message.
pub(super) fn silence(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    e.case(case).must_get(j, |call| call.response.is_none() || call.status().is_some_and(|status| status >= 400));
}

/// The connection of a message.
pub(super) fn connection<'e, 't>(evidence: &'e Evidence<'t>, place: EventRef) -> Option<&'e Connection<'t>> {
    evidence.connections.get(place.connection)
}

/// The client's message in an HTTP request.
pub(super) fn sent_in<'c>(connection: &'c Connection<'_>, http: &HttpExchange<'_>) -> Option<&'c Message<'c>> {
    let mut messages = http.messages.iter().filter_map(|index| connection.messages.get(*index));
    messages.find(|message| !message.is_from_server())
}

/// Whether two messages are on one stream: the same exchange of the same connection.
pub(super) fn on_one_stream(one: &Message<'_>, other: &Message<'_>) -> bool {
    one.place.connection == other.place.connection && one.exchange == other.exchange
}

/// Checks that a server lives after a case: a later message on its connection gets an answer.
pub(super) fn survives(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    e.look_for(case);
    for connection in &e.connections {
        let calls: Vec<_> = connection.calls().collect();
        for (index, call) in calls.iter().enumerate().filter(|(_, call)| is_case_of(call, case)) {
            let later = calls.get(index + 1..).unwrap_or_default();
            if later.iter().any(Call::is_served) || (call.response.is_some() && !connection.ended_by_server()) {
                j.check_answer(true, call, String::new);
            } else if connection.ended_by_server() {
                // The last message before the end is the one that ended it.
                if !later.iter().all(is_unanswered_control) {
                    continue;
                }
                j.check_at(false, call.request.case, vec![call.request.place], || "the end of the connection after it");
                j.at_level_if(!is_broken(call), crate::Level::Must);
            } else {
                let is_request = |it: &&Call<'_>| it.request.kind == crate::Kind::Request;
                let mut due = later.iter().filter(is_request).filter(|it| is_due(e, connection, it)).peekable();
                let is_due = due.peek().is_some();
                if due.any(|it| is_usually_answered(e, it)) {
                    j.check_answer(false, call, || "no answer to any later request");
                } else {
                    j.untested(if is_due { NEVER_ANSWERED } else { NOT_DUE });
                }
            }
        }
    }
}

/// Why a page says nothing.
pub(super) const PAGE: &str = "the server answers with HTML";

/// Cases that are not valid messages, or whose time or line is unusual. A server that dies of one is only weak.
const BROKEN: [&str; 8] = [
    "bad-cursor",
    "bad-params",
    "era",
    "malformed",
    "meta-negative",
    "negotiate",
    "quiet-window/request-first",
    "stdin",
];

/// Whether a server that dies of this message violates nothing but good sense.
pub(super) fn is_broken(call: &Call<'_>) -> bool {
    let case = call.request.case.unwrap_or_default();
    BROKEN.iter().any(|it| case.starts_with(it)) || case.contains("/malformed")
}

/// Whether this is the request after a case that shows whether the server still lives, and it does not.
pub(super) fn is_unanswered_control(call: &Call<'_>) -> bool {
    is_case_of(call, "control") && !call.is_served()
}

/// Why silence after something says nothing about it.
pub(super) const NEVER_ANSWERED: &str = "the server answers no such request, also in normal work";

/// Whether the server has answered a request of the same method in normal work.
pub(super) fn is_usually_answered(evidence: &Evidence<'_>, call: &Call<'_>) -> bool {
    let mut same = evidence.calls_of(call.method());
    same.any(|it| it.request.case.is_none() && it.is_served())
}

/// Whether a case was sent as this one, or as one below it.
pub(super) fn is_case_of(call: &Call<'_>, case: &str) -> bool {
    call.request.case.is_some_and(|name| is_case(name, case))
}

/// Checks that malformed input is refused: an error, over HTTP a status of 400 or above, or silence on a pipe.
pub(super) fn refused(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    // A batch is refused as a whole.
    for call in e.case(case).filter(|call| !call.request.is_in_batch || call.has_result()) {
        if call.is_page() {
            j.untested(PAGE);
        } else if call.is_answered() {
            let is_refused = call.response.is_some_and(|it| it.error().is_some());
            j.check_call(is_refused || call.status().is_some_and(|status| status >= 400), &call);
        } else {
            j.untested("the server ignored it");
        }
    }
}

/// Every item of a list, with its name and the call that listed it. Results of cases do not count.
pub(super) fn items<'e>(
    evidence: &'e Evidence<'_>,
    method: &'e str,
) -> impl Iterator<Item = (&'e Value, &'e str, Call<'e>)> {
    let (key, name) = keys(method);
    let results = evidence.results_of(method).plain();
    results.flat_map(move |(call, result)| {
        let items = elements(&result[key]);
        items.map(move |item| (item, item[name].as_str().unwrap_or_default(), call))
    })
}

/// Checks every item of a list, with one finding for each, however often it was listed.
pub(super) fn each_item<S: Into<String>>(
    e: &Evidence<'_>,
    j: &mut Judgement,
    method: &str,
    holds: impl Fn(&Value) -> bool,
    found: impl Fn(&Value) -> S,
) {
    items(e, method).must_once(j, holds, found);
}

/// Checks that no item is listed twice in one reading.
pub(super) fn unique(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    let (key, name) = keys(method);
    for reading in readings(e, method) {
        let mut seen = std::collections::HashSet::new();
        for (call, result) in &reading.pages {
            for item in elements(&result[key]).filter_map(|item| item[name].as_str()) {
                let is_known = j.has_found(item);
                let is_first = seen.insert(item);
                if !is_known {
                    j.check_at(is_first, Some(item), call.places(), || "it twice");
                }
            }
        }
    }
}

/// Whether a value is a text that is not empty.
pub(super) fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// Whether a result or params say nothing but `_meta`.
pub(super) fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.keys().all(|key| key == "_meta"))
}

/// Whether a value is one of these texts.
pub(super) fn is_one_of(value: &Value, texts: &[&str]) -> bool {
    value.as_str().is_some_and(|text| texts.contains(&text))
}

/// Whether a value is a number without a fraction.
pub(super) fn is_integer(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Whether a text is standard base64.
pub(crate) fn is_base64(text: &str) -> bool {
    bytes_of(text).is_some()
}

/// The bytes of standard base64.
pub(super) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text).ok()
}

/// Whether a text has the form of a MIME type.
pub(super) fn is_mime(text: &str) -> bool {
    let is_token =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&it));
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// What a modern request has in `_meta`.
pub(super) fn meta(material: &Material) -> Value {
    let client = json!({ "name": "rehearse-check", "version": "1" });
    meta::of_request(material.version.unwrap_or(Version::LATEST), client, json!({})).into()
}

/// A request that every server serves at once: a list, or what its era has, with its params.
pub(super) fn cheap_request(material: &Material) -> (&'static str, Value) {
    let params = if material.is_modern() { json!({ "_meta": meta(material) }) } else { json!({}) };
    (material.cheap_method(), params)
}

/// Whether plain calls of the same tool had results, for each client that called it.
pub(super) fn tool_works(evidence: &Evidence<'_>, call: &Call<'_>) -> bool {
    let name = call.request.at("/params/name");
    let mut plain =
        evidence.calls_of("tools/call").filter(|it| it.request.case.is_none() && it.request.at("/params/name") == name);
    plain.next().is_some_and(|first| first.result().is_some() && plain.all(|it| it.result().is_some()))
}

/// Checks that on each of two connections that are used at the same time no more answers come than were asked for.
pub(super) fn isolated(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let Some(call) = connection.calls().find(|call| is_case_of(call, "isolation")) else { continue };
        let mut open: std::collections::HashMap<String, i64> = std::collections::HashMap::new();
        let mut foreign = None;
        for message in &connection.messages {
            let Some(id) = message.id().filter(|id| !id.is_null()) else { continue };
            match (message.is_from_server(), message.kind) {
                (false, crate::Kind::Request) => *open.entry(id.to_string()).or_default() += 1,
                (true, crate::Kind::Response) => {
                    let left = open.entry(id.to_string()).or_default();
                    *left -= 1;
                    foreign = foreign.or((*left < 0).then_some(message));
                }
                _ => {}
            }
        }
        match foreign {
            Some(message) => j.check(false, message, || "an answer to no request of this connection"),
            None if call.is_answered() => j.check_answer(true, &call, String::new),
            None => j.untested("the server did not answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Direction, Trace, Transport};

    use super::*;
    use crate::{CheckVerdict, Facts, checks};

    #[test]
    fn the_refusal_of_a_question_of_the_server_is_no_error_of_the_request() {
        let (sent, came) = (Direction::ClientToServer, Direction::ServerToClient);
        let hello = r#"{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"resources":{"subscribe":true}}}}"#;
        let ask = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#;
        let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}"#;
        let verdict = |question: Option<&str>, answer: Option<&str>| {
            let mut trace = Trace::default();
            let mut push = |direction, text: &str| {
                trace.push_frame(Duration::ZERO, direction, bytes::Bytes::copy_from_slice(text.as_bytes()));
            };
            push(sent, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
            push(came, hello);
            push(sent, subscribe);
            question.into_iter().for_each(|question| push(came, question));
            answer.into_iter().for_each(|answer| push(sent, answer));
            push(came, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#);
            let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, Facts::default());
            let check = checks().iter().find(|it| it.id == "life.caps.subscribe-works").expect("the check");
            check.judge(&evidence).verdict
        };
        let refusal = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#;
        let pong = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        assert_eq!(verdict(None, None), CheckVerdict::Warn);
        assert_eq!(verdict(Some(ask), Some(refusal)), CheckVerdict::NotTested);
        assert_eq!(verdict(Some(ask), Some(pong)), CheckVerdict::Warn, "the question was answered");
    }
}
