//! WebSocket: a custom transport with a message in each text frame.

use std::str;

use rehearse_protocol::ClosedHow;
use serde_json::{Deserializer, Value};

use super::{Judge, common::isolated};
use crate::{Case, Connection, EventRef, Evidence, HttpExchange, Judgement, Level, Material};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("ws.handshake.subprotocol", subprotocol),
    ("ws.frame.text", text),
    ("ws.frame.utf8", utf8),
    ("ws.close.clean", closes),
    ("ws.origin.checked", origin),
    ("ws.malformed.survives", survives),
    ("ws.isolation.connections", isolated),
];

pub(super) fn cases(_: &Material) -> Vec<Case> {
    Vec::new()
}

fn places(http: &HttpExchange<'_>) -> Vec<EventRef> {
    [Some(http.request), http.response].into_iter().flatten().collect()
}

fn subprotocol(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (_, http) in evidence.exchanges().filter(|(_, http)| http.status == Some(101)) {
        let offered = http.request_header("sec-websocket-protocol").unwrap_or_default();
        let chosen = http.header("sec-websocket-protocol");
        let is_offered = |chosen: &str| offered.split(',').any(|it| it.trim() == chosen);
        let subject = http.case.map(ToOwned::to_owned);
        let holds = chosen.is_none_or(is_offered);
        j.check_at(holds, subject, places(http), || format!("the subprotocol {:?}", chosen.unwrap_or_default()));
        if !holds {
            j.at_level(Level::Must);
        }
    }
}

fn text(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        // The upgrade has a body if a message was binary.
        for http in connection.exchanges.values().filter(|http| http.status == Some(101) && http.case.is_none()) {
            j.check_at(http.body.is_empty(), None, places(http), || "a binary message".to_owned());
        }
        for frame in connection.messages.iter().filter(|it| it.is_from_server() && !it.is_in_batch) {
            // What is one value needs no other look.
            let is_one = !frame.value.is_null() || !has_several(frame.bytes);
            j.check(is_one, frame, || "several messages in one".to_owned());
        }
    }
}

/// Whether these are several JSON values.
pub(super) fn has_several(bytes: &[u8]) -> bool {
    let mut values = Deserializer::from_slice(bytes).into_iter::<Value>();
    matches!((values.next(), values.next()), (Some(Ok(_)), Some(Ok(_))))
}

fn utf8(evidence: &Evidence<'_>, j: &mut Judgement) {
    for connection in &evidence.connections {
        for frame in connection.messages.iter().filter(|it| it.is_from_server() && !it.is_in_batch) {
            j.check(str::from_utf8(frame.bytes).is_ok(), frame, || "bytes that are not UTF-8".to_owned());
        }
        if let Some((place, _, closed)) = connection.closed
            && closed.how == ClosedHow::NotUtf8
        {
            j.check_at(false, None, vec![place], || "bytes that are not UTF-8".to_owned());
        }
    }
}

fn closes(evidence: &Evidence<'_>, j: &mut Judgement) {
    let closed = evidence.connections.iter().filter_map(Connection::closed_by_client);
    for (place, closed) in closed.filter(|(_, closed)| closed.how != ClosedHow::Broken) {
        j.check_at(closed.how != ClosedHow::NoCloseFrame, None, vec![place], || closed.to_string());
    }
}

fn origin(evidence: &Evidence<'_>, j: &mut Judgement) {
    if !evidence.facts.is_local {
        return j.untested("the server is not local, and may accept any origin");
    }
    for (_, http) in evidence.http_case("ws-origin") {
        let Some(status) = http.status.filter(|it| !matches!(it, 401 | 429)) else { continue };
        j.check_at(status != 101, None, places(http), || "an open WebSocket".to_owned());
    }
}

fn survives(evidence: &Evidence<'_>, j: &mut Judgement) {
    let is_sent = evidence.case("ws-malformed/text").next().is_some();
    for call in evidence.case("ws-malformed/after").filter(|_| is_sent) {
        j.check_answer(call.is_answered(), &call, || "no answer on a new connection".to_owned());
    }
}
