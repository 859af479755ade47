//! The handshake of the legacy era, as a client does it.

use std::time::Duration;

use rehearse_protocol::{Transport, Version, names::SESSION_HEADER};
use serde_json::Value;

use super::super::Judge;
use super::super::common::{keyed, shown};
use super::super::life::is_published;
use super::super::meta::{icons, is_icon_url};
use super::asked::{Asked, ELICIT, ROOTS, SAMPLE, answered, neglect};
use super::{completes, only_declared};
use crate::areas::query::{Calls, Messages, Query};
use crate::{Call, Connection, Evidence, Flow, Judgement, Kind, Level, Message, evidence::VERSION_POINTER, shapes};

/// By how much a request over HTTP may overtake the notification before it.
const OVERTAKE: Duration = Duration::from_secs(1);
/// Members of params, each with its method, and the version that brought it.
const NEWER: [(&str, &str, Version); 4] = [
    ("tools/call", "/params/task", Version::V2025_11_25),
    ("completion/complete", "/params/context", Version::V2025_06_18),
    ("tools/call", "/params/inputResponses", Version::V2026_07_28),
    ("tools/call", "/params/requestState", Version::V2026_07_28),
];

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-life.init.first", first),
    ("client-life.init.params", |e, j| shapes::judge(e, j, "client-life.init.params")),
    ("client-life.init.version-known", |e, j| {
        let versions = e.calls_of("initialize").requests().pointer("/params/protocolVersion");
        for (message, version) in versions {
            j.check(is_published(version), message, || format!("the version {}", shown(version)));
            let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
            let is_newer =
                |it: &str| it.len() == 10 && it.as_bytes().iter().all(is_digit) && it > Version::LATEST.as_str();
            let is_draft = |it: &str| it.to_ascii_lowercase().contains("draft");
            j.at_level_if(version.as_str().is_some_and(|it| is_draft(it) || is_newer(it)), Level::Derived);
        }
    }),
    ("client-life.init.no-batch", |e, j| {
        let requests = e.calls().filter(|call| call.method() == "initialize").requests();
        requests.must(j, |it| !it.is_in_batch, |_| "`initialize` in a batch");
    }),
    ("client-life.init.not-cancelled", |e, j| {
        for connection in &e.connections {
            for call in connection.calls().filter(|call| call.method() == "initialize") {
                let cancelled = connection.cancellations(call.request).next();
                let places = [call.request].into_iter().chain(cancelled).map(|it| it.place).collect();
                j.check_at(cancelled.is_none(), None, places, || "a cancellation of `initialize`");
            }
        }
    }),
    ("client-life.init.waits", |e, j| {
        for connection in &e.connections {
            let Some((call, response)) = handshake(connection) else { continue };
            let early = requests(connection)
                .find(|it| it.place > call.request.place && it.place < response.place && it.method() != Some("ping"));
            let places = [call.request].into_iter().chain(early).map(|it| it.place).collect();
            let method = early.and_then(Message::method);
            j.check_at(early.is_none(), method, places, || "a request before the response to `initialize`");
        }
    }),
    ("client-life.initialized.sent", |e, j| {
        for connection in &e.connections {
            let Some((_, response)) = handshake(connection) else { continue };
            let sent = notifications(connection, "notifications/initialized").next();
            let next = requests(connection).find(|it| it.place > response.place && it.method() != Some("ping"));
            match (sent, next) {
                (Some(sent), _) => j.check(true, sent, String::new),
                (None, Some(next)) => {
                    j.check(false, next, || format!("{} without it", next.method().unwrap_or_default()));
                }
                (None, None) => j.untested("the client ended the session after the handshake"),
            }
        }
    }),
    ("client-life.initialized.once", |e, j| {
        for connection in identified_sessions(e).filter(|it| handshakes(it) == 1) {
            let all: Vec<_> = notifications(connection, "notifications/initialized").collect();
            let Some(last) = all.last() else { continue };
            j.check(all.len() == 1, last, || format!("{} notifications", all.len()));
        }
    }),
    ("client-life.initialized.not-after-error", |e, j| {
        for connection in e.connections.iter().filter(|it| handshakes(it) == 0) {
            let is_failed = |it: &Call<'_>| it.method() == "initialize" && it.error_code().is_some();
            let failed = connection.calls().find(|it| is_failed(it) && !it.is_refused_elsewhere());
            let Some(failed) = failed else { continue };
            let sent = notifications(connection, "notifications/initialized").next();
            let places = failed.places_with(sent.map(|it| it.place));
            j.check_at(sent.is_none(), None, places, || "`notifications/initialized`");
        }
    }),
    ("client-life.negotiate.respects", |e, j| {
        for call in e.calls().filter(|call| call.request.kind == Kind::Request && call.method() != "initialize") {
            let is_newer = |(method, pointer, since): &&(&str, &str, Version)| {
                *method == call.method() && *since > e.version && !call.request.at(pointer).is_null()
            };
            let newer = NEWER.iter().find(is_newer);
            j.check_at(newer.is_none(), Some(call.method()), vec![call.request.place], || {
                let found = newer.map(|(_, pointer, since)| format!("`{}` of {since}", &pointer["/params/".len()..]));
                found.unwrap_or_default()
            });
        }
        // What names no session over HTTP may be of a client that looks for the newer version.
        for connection in e.connections.iter().filter(|_| !e.is_modern()) {
            let Some((_, response)) = handshake(connection) else { continue };
            let is_inside =
                |call: &Call<'_>| call.http.is_none_or(|http| http.request_header(SESSION_HEADER).is_some());
            let later = connection.calls().filter(|call| call.request.place > response.place && is_inside(call));
            for call in later.filter(|call| call.request.at(VERSION_POINTER).is_string()) {
                j.check_subject(false, call.method(), call.request, || "`_meta` of 2026-07-28");
            }
        }
    }),
    ("client-life.init.version-latest", |e, j| {
        for connection in &e.connections {
            let Some((call, response)) = handshake(connection) else { continue };
            let version = |value: &Value| value.as_str().and_then(|it| it.parse::<Version>().ok());
            let asked = version(call.request.at("/params/protocolVersion"));
            let Some((asked, given)) = asked.zip(version(response.at("/result/protocolVersion"))) else { continue };
            if given > asked {
                let uses = requests(connection).find(|it| it.place > response.place);
                let places = call.places_with(uses.map(|it| it.place));
                j.check_at(uses.is_none(), None, places, || format!("the version {asked}, and it speaks {given}"));
            }
        }
    }),
    ("client-life.negotiate.accepts-lower", |e, j| {
        for connection in &e.connections {
            let Some((call, response)) = handshake(connection) else { continue };
            if call.request.at("/params/protocolVersion") == response.at("/result/protocolVersion") {
                continue;
            }
            let is_used = requests(connection).any(|it| it.place > response.place);
            let hangs = e.facts.flow.as_ref().and_then(|usual| usual.hangs_in(&Flow::new(e)));
            j.check_at(is_used || hangs.is_none(), None, call.places(), || "neither a request nor an end");
        }
    }),
    ("client-life.negotiate.rejects-unknown", |e, j| {
        for connection in &e.connections {
            // What a client has asked for, it supports.
            let is_unknown = |call: &Call<'_>| {
                let version = call.result().and_then(|it| it["protocolVersion"].as_str());
                let is_asked = version == call.text("/params/protocolVersion");
                call.method() == "initialize" && !is_asked && version.is_some_and(|it| it.parse::<Version>().is_err())
            };
            let Some(call) = connection.calls().find(is_unknown) else { continue };
            let Some(response) = call.response else { continue };
            let used = requests(connection).find(|it| it.place > response.place && it.method() != Some("ping"));
            let method = used.and_then(Message::method).unwrap_or_default().to_owned();
            let places = call.places_with(used.map(|it| it.place));
            j.check_at(used.is_none(), None, places, || {
                format!(
                    "{method} after the version {}",
                    shown(&call.result().unwrap_or(&Value::Null)["protocolVersion"])
                )
            });
        }
    }),
    ("client-life.caps.only-server-declared", |e, j| {
        only_declared(e, j, &["tools/list", "tools/call"], "tools");
        only_declared(e, j, &["prompts/list", "prompts/get"], "prompts");
        only_declared(e, j, &["resources/list", "resources/templates/list", "resources/read"], "resources");
        // In 2026-07-28 tasks are an extension.
        if e.version == Version::V2025_11_25 {
            only_declared(e, j, &["tasks/list"], "tasks/list");
            only_declared(e, j, &["tasks/cancel"], "tasks/cancel");
        }
    }),
    ("client-life.caps.honest-roots", |e, j| honest(e, j, ROOTS, "roots")),
    ("client-life.caps.honest-sampling", |e, j| honest(e, j, SAMPLE, "sampling")),
    ("client-life.caps.honest-elicitation", |e, j| honest(e, j, ELICIT, "elicitation")),
    ("client-life.caps.undeclared-refused", |e, j| {
        undeclared(e, j, ROOTS, "roots");
        undeclared(e, j, ELICIT, "elicitation");
    }),
    ("client-life.caps.undeclared-sampling", |e, j| undeclared(e, j, SAMPLE, "sampling")),
    ("client-life.caps.experimental-object", |e, j| shapes::judge(e, j, "client-life.caps.experimental-object")),
    ("client-life.clientinfo.icons", |e, j| {
        icons(e, j, |icon| Some(is_icon_url(icon["src"].as_str().unwrap_or_default())));
        let is_url = |url: &Value| url.as_str().is_some_and(|it| url::Url::parse(it).is_ok());
        for message in e.sent() {
            let infos = ["/params/clientInfo", "/params/_meta/io.modelcontextprotocol~1clientInfo"];
            let urls = infos.iter().filter_map(|info| Some((message, message.at(info).get("websiteUrl")?)));
            urls.must(j, is_url, keyed("websiteUrl"));
        }
    }),
    ("client-life.instructions.accepts", |e, j| completes(e, j, "instructions")),
    ("client-life.reinit.none", |e, j| {
        for connection in &e.connections {
            let Some((first, response)) = handshake(connection) else { continue };
            // Without a session over HTTP, each may be of another client.
            if first.http.is_some_and(|http| http.header(SESSION_HEADER).is_none()) {
                continue;
            }
            let again = requests(connection).find(|it| it.method() == Some("initialize") && it.place > response.place);
            let is_new_session = connection.exchanges.values().any(|http| http.status == Some(404));
            let message = again.unwrap_or(first.request);
            j.check(again.is_none() || is_new_session, message, || "another `initialize` in the session");
        }
    }),
    ("client-life.order.concurrent-before-initialized", |e, j| {
        let is_http = matches!(e.transport, Transport::Http | Transport::Sse);
        for connection in &e.connections {
            let Some((_, response)) = handshake(connection) else { continue };
            let Some(sent) = notifications(connection, "notifications/initialized").next() else { continue };
            // A client that has an answer and goes on has not sent the notification meanwhile.
            let calls = connection.calls().filter(|it| it.method() != "initialize" && it.method() != "ping");
            let answers: Vec<_> = calls.filter_map(|call| Some((call.request.place, call.response?.place))).collect();
            let is_after_another = |it: &Message<'_>| answers.iter().any(|(_, answer)| *answer < it.place);
            let is_answered =
                |it: &Message<'_>| answers.iter().any(|(asked, answer)| *asked == it.place && *answer < sent.place);
            let is_early = |it: &&Message<'_>| {
                let is_long = is_answered(it) && sent.time.saturating_sub(it.time) > OVERTAKE;
                let overtakes = is_http && !is_long && !is_after_another(it);
                it.place > response.place && it.place < sent.place && it.method() != Some("ping") && !overtakes
            };
            let early = requests(connection).find(is_early);
            let message = early.unwrap_or(sent);
            let found = || format!("{} before `notifications/initialized`", message.method().unwrap_or_default());
            j.check(early.is_none(), message, found);
        }
    }),
];

/// Checks that a client declares what it serves.
fn undeclared(e: &Evidence<'_>, j: &mut Judgement, method: &str, capability: &str) {
    let is_undeclared = |it: &Asked<'_>| it.declared.is_object() && it.declared.get(capability).is_none();
    for asked in answered(e).into_iter().filter(|it| it.method == method && is_undeclared(it)) {
        j.check_at(asked.result.is_none(), Some(asked.method), asked.places, || "a result");
        // What gives nothing is nearly a refusal.
        let is_empty = |it: &Value| {
            matches!(it["action"].as_str(), Some("decline" | "cancel")) || it["roots"] == serde_json::json!([])
        };
        j.at_level_if(asked.result.is_some_and(is_empty), Level::Derived);
    }
}

/// Checks that a client serves what it declares.
fn honest(e: &Evidence<'_>, j: &mut Judgement, method: &str, capability: &str) {
    for asked in answered(e).into_iter().filter(|it| it.method == method) {
        let declared = &asked.declared[capability];
        let is_more = (asked.params["mode"] == "url" && declared.get("url").is_none())
            || (asked.params.get("tools").is_some() && declared.get("tools").is_none());
        if declared.is_object() && !is_more {
            let is_served = asked.error_code != Some(-32601);
            j.check_at(is_served, None, asked.places, || "the error -32601");
        }
    }
    for connection in e.connections.iter().filter(|_| !e.is_modern()) {
        let sent = connection.messages.iter().find(|it| it.method() == Some("initialize"));
        let is_declared = sent.is_some_and(|it| it.at(&format!("/params/capabilities/{capability}")).is_object());
        let open = connection.asks().filter(|ask| ask.method() == method && ask.responses.is_empty());
        for ask in open.filter(|_| is_declared) {
            match neglect(e, &ask) {
                Some(found) => {
                    j.check(false, ask.request, || found);
                    j.at_level(Level::Derived);
                }
                None => j.untested("the client did not answer before it was ended, or ended at once"),
            }
        }
    }
    j.untested("the server did not ask for it, or the client does not declare it");
}

/// The handshake that the server has accepted.
pub(super) fn handshake<'c>(connection: &'c Connection<'_>) -> Option<(Call<'c>, &'c Message<'c>)> {
    let call = connection.calls().find(|call| call.method() == "initialize" && call.has_result())?;
    Some((call, call.response?))
}

/// The connections of which each request is known to be of their session: without a session id over HTTP, nothing says to
/// which of several sessions at once a request belongs.
pub(super) fn identified_sessions<'e, 't>(evidence: &'e Evidence<'t>) -> impl Iterator<Item = &'e Connection<'t>> {
    let is_nameless = |it: &Connection<'_>| {
        let http = handshake(it).and_then(|(call, _)| call.http);
        http.is_some_and(|http| http.header(SESSION_HEADER).is_none())
    };
    let is_alone = evidence.connections.iter().filter(|it| is_nameless(it)).count() < 2;
    evidence.connections.iter().filter(move |it| is_alone || !is_nameless(it))
}

pub(super) fn handshakes(connection: &Connection<'_>) -> usize {
    connection.calls().filter(|call| call.method() == "initialize" && call.has_result()).count()
}

fn requests<'c>(connection: &'c Connection<'_>) -> impl Iterator<Item = &'c Message<'c>> {
    connection.sent().filter(|it| it.kind == Kind::Request)
}

fn notifications<'c>(connection: &'c Connection<'_>, method: &'c str) -> impl Iterator<Item = &'c Message<'c>> {
    let sent = connection.sent().filter(|it| it.id().is_none());
    sent.filter(move |it| it.method() == Some(method))
}

fn first(e: &Evidence<'_>, j: &mut Judgement) {
    for connection in &e.connections {
        let is_first =
            |it: &&Message<'_>| !it.is_from_server() && it.kind == Kind::Request && it.method() != Some("ping");
        let is_modern = |it: &Message<'_>| it.at(VERSION_POINTER).is_string();
        // A request of 2026-07-28 that is refused for lack of a token may be alone on its connection.
        let all = connection.earlier.iter().chain(&connection.messages).filter(|it| !is_modern(it));
        // What a server refuses for its token begins nothing, and a session goes on after that.
        let is_refused = |it: &Message<'_>| {
            let http = it.exchange.and_then(|number| connection.exchanges.get(&number));
            http.is_some_and(|http| http.status == Some(401))
        };
        let mut all = all.filter(|it| !is_refused(it));
        let Some(message) = all.find(is_first) else { continue };
        let method = message.method().unwrap_or_default();
        j.check(method == "initialize", message, || format!("{method} first"));
    }
}
