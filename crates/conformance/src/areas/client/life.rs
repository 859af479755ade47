//! The handshake of the legacy era, as a client does it.

use std::time::Duration;

use rehearse_protocol::{Transport, Version};

use super::super::{Judge, common::shown, meta::icons};
use super::completes;
use crate::{Call, Connection, Evidence, Judgement, Kind, Message, shapes};

/// By how much a request over HTTP may overtake the notification before it.
const OVERTAKE: Duration = Duration::from_millis(50);
const META_VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
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
        for call in e.calls_of("initialize") {
            let version = call.request.at("/params/protocolVersion");
            let is_known = version.as_str().is_some_and(|it| it.parse::<Version>().is_ok());
            j.check(is_known, call.request, || format!("the version {}", shown(version)));
        }
    }),
    ("client-life.init.no-batch", |e, j| {
        for call in e.calls().filter(|call| call.method() == "initialize") {
            j.check(!call.request.is_in_batch, call.request, || "`initialize` in a batch".to_owned());
        }
    }),
    ("client-life.init.not-cancelled", |e, j| {
        for connection in &e.connections {
            for call in connection.calls().filter(|call| call.method() == "initialize") {
                let cancelled = notifications(connection, "notifications/cancelled")
                    .find(|it| Some(it.at("/params/requestId")) == call.request.id());
                let places = [call.request].into_iter().chain(cancelled).map(|it| it.place).collect();
                j.check_at(cancelled.is_none(), None, places, || "a cancellation of `initialize`".to_owned());
            }
        }
    }),
    ("client-life.init.waits", |e, j| {
        for connection in &e.connections {
            let Some((call, response)) = handshake(connection) else { continue };
            let early = requests(connection)
                .find(|it| it.place > call.request.place && it.place < response.place && it.method() != Some("ping"));
            let places = [call.request].into_iter().chain(early).map(|it| it.place).collect();
            let method = early.and_then(Message::method).map(ToOwned::to_owned);
            j.check_at(early.is_none(), method, places, || "a request before the response to `initialize`".to_owned());
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
        for connection in e.connections.iter().filter(|it| handshakes(it) == 1) {
            let all: Vec<_> = notifications(connection, "notifications/initialized").collect();
            if let Some(last) = all.last() {
                j.check(all.len() == 1, last, || format!("{} notifications", all.len()));
            }
        }
    }),
    ("client-life.initialized.not-after-error", |e, j| {
        for connection in e.connections.iter().filter(|it| handshakes(it) == 0) {
            let failed = connection.calls().find(|it| it.method() == "initialize" && it.error_code().is_some());
            let Some(failed) = failed else { continue };
            let sent = notifications(connection, "notifications/initialized").next();
            let places = failed.places().into_iter().chain(sent.map(|it| it.place)).collect();
            j.check_at(sent.is_none(), None, places, || "`notifications/initialized`".to_owned());
        }
    }),
    ("client-life.negotiate.respects", |e, j| {
        for call in e.calls().filter(|call| call.request.kind == Kind::Request && call.method() != "initialize") {
            let is_newer = |(method, pointer, since): &&(&str, &str, Version)| {
                *method == call.method() && *since > e.version && !call.request.at(pointer).is_null()
            };
            let newer = NEWER.iter().find(is_newer);
            j.check_at(newer.is_none(), Some(call.method().to_owned()), vec![call.request.place], || {
                let found = newer.map(|(_, pointer, since)| format!("`{}` of {since}", &pointer["/params/".len()..]));
                found.unwrap_or_default()
            });
        }
    }),
    ("client-life.caps.experimental-object", |e, j| shapes::judge(e, j, "client-life.caps.experimental-object")),
    ("client-life.clientinfo.icons", |e, j| {
        icons(e, j, |icon| {
            let source = icon["src"].as_str().unwrap_or_default().to_ascii_lowercase();
            Some(["https:", "http:", "data:"].iter().any(|scheme| source.starts_with(scheme)))
        });
        for message in e.sent() {
            let infos = ["/params/clientInfo", "/params/_meta/io.modelcontextprotocol~1clientInfo"];
            for url in infos.iter().filter_map(|info| message.at(info).get("websiteUrl")) {
                let is_url = url.as_str().is_some_and(|it| url::Url::parse(it).is_ok());
                j.check(is_url, message, || format!("`websiteUrl: {}`", shown(url)));
            }
        }
    }),
    ("client-life.instructions.accepts", |e, j| completes(e, j, "instructions")),
    ("client-life.reinit.none", |e, j| {
        for connection in &e.connections {
            let Some((first, response)) = handshake(connection) else { continue };
            let again = requests(connection).find(|it| it.method() == Some("initialize") && it.place > response.place);
            let is_new_session = connection.exchanges.values().any(|http| http.status == Some(404));
            let message = again.unwrap_or(first.request);
            j.check(again.is_none() || is_new_session, message, || "another `initialize` in the session".to_owned());
        }
    }),
    ("client-life.order.concurrent-before-initialized", early_requests),
];

/// The handshake that the server has accepted.
pub(super) fn handshake<'c>(connection: &'c Connection<'_>) -> Option<(Call<'c>, &'c Message<'c>)> {
    let call = connection.calls().find(|call| call.method() == "initialize" && call.result().is_some())?;
    Some((call, call.response?))
}

fn handshakes(connection: &Connection<'_>) -> usize {
    connection.calls().filter(|call| call.method() == "initialize" && call.result().is_some()).count()
}

fn requests<'c>(connection: &'c Connection<'_>) -> impl Iterator<Item = &'c Message<'c>> {
    connection.messages.iter().filter(|it| !it.is_from_server() && it.kind == Kind::Request)
}

fn notifications<'c>(connection: &'c Connection<'_>, method: &'c str) -> impl Iterator<Item = &'c Message<'c>> {
    let sent = connection.messages.iter().filter(|it| !it.is_from_server() && it.id().is_none());
    sent.filter(move |it| it.method() == Some(method))
}

fn first(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        let is_first =
            |it: &&Message<'_>| !it.is_from_server() && it.kind == Kind::Request && it.method() != Some("ping");
        let is_modern = |it: &Message<'_>| it.at(META_VERSION).is_string();
        let mut all = connection.earlier.iter().filter(|it| !is_modern(it)).chain(&connection.messages);
        if let Some(message) = all.find(is_first) {
            let method = message.method().unwrap_or_default();
            j.check(method == "initialize", message, || format!("{method} first"));
        }
    }
}

fn early_requests(evidence: &Evidence<'_>, j: &mut Judgement) {
    let is_http = matches!(evidence.transport, Transport::Http | Transport::Sse);
    for connection in &evidence.connections {
        let Some((_, response)) = handshake(connection) else { continue };
        let Some(sent) = notifications(connection, "notifications/initialized").next() else { continue };
        let is_early = |it: &&Message<'_>| {
            let overtakes = is_http && sent.time.saturating_sub(it.time) <= OVERTAKE;
            it.place > response.place && it.place < sent.place && it.method() != Some("ping") && !overtakes
        };
        let early = requests(connection).find(is_early);
        let message = early.unwrap_or(sent);
        j.check(early.is_none(), message, || {
            format!("{} before `notifications/initialized`", message.method().unwrap_or_default())
        });
    }
}
