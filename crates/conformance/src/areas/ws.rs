//! WebSocket: a custom transport with a message in each text frame.

use std::str;

use rehearse_protocol::ClosedHow;
use serde_json::{Deserializer, Value};

use super::query::Query;
use super::{Judge, common::isolated};
use crate::{Connection, Level};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("ws.handshake.subprotocol", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.status == Some(101)) {
            let offered = http.request_header("sec-websocket-protocol").unwrap_or_default();
            let chosen = http.header("sec-websocket-protocol");
            let is_offered = |chosen: &str| offered.split(',').any(|it| it.trim() == chosen);
            let holds = chosen.is_none_or(is_offered);
            j.check_at(holds, http.case, http.places(), || format!("the subprotocol {:?}", chosen.unwrap_or_default()));
            j.at_level_if(!holds, Level::Must);
        }
    }),
    ("ws.frame.text", |e, j| {
        for connection in &e.connections {
            // The upgrade has a body if a message was binary.
            let all = connection.exchanges.values().filter(|http| http.status == Some(101) && http.case.is_none());
            all.must(j, |http| http.body.is_empty(), |_| "a binary message");
            for frame in connection.received().filter(|it| !it.is_in_batch) {
                // What is one value needs no other look.
                let is_one = !frame.value.is_null() || !has_several(frame.bytes);
                j.check(is_one, frame, || "several messages in one");
            }
        }
    }),
    ("ws.frame.utf8", |e, j| {
        for connection in &e.connections {
            let frames = connection.received().filter(|it| !it.is_in_batch);
            frames.must(j, |frame| str::from_utf8(frame.bytes).is_ok(), |_| "bytes that are not UTF-8");
            if let Some((place, _, closed)) = connection.closed
                && closed.how == ClosedHow::NotUtf8
            {
                j.check_at(false, None, vec![place], || "bytes that are not UTF-8");
            }
        }
    }),
    ("ws.close.clean", |e, j| {
        let closed = e.connections.iter().filter_map(Connection::closed_by_client);
        for (place, closed) in closed.filter(|(_, closed)| closed.how != ClosedHow::Broken) {
            j.check_at(closed.how != ClosedHow::NoCloseFrame, None, vec![place], || closed.to_string());
        }
    }),
    ("ws.origin.checked", |e, j| {
        if !e.facts.is_local {
            return j.untested("the server is not local, and may accept any origin");
        }
        for (_, http) in e.http_case("ws-origin") {
            let Some(status) = http.status.filter(|it| !matches!(it, 401 | 429)) else { continue };
            j.check_at(status != 101, None, http.places(), || "an open WebSocket");
        }
    }),
    ("ws.malformed.survives", |e, j| {
        let is_sent = e.case("ws-malformed/text").next().is_some();
        let calls = e.case("ws-malformed/after").filter(|_| is_sent);
        calls.must(j, |call| call.is_answered(), |_| "no answer on a new connection");
    }),
    ("ws.isolation.connections", isolated),
];

/// Whether these are several JSON values.
pub(super) fn has_several(bytes: &[u8]) -> bool {
    let mut values = Deserializer::from_slice(bytes).into_iter::<Value>();
    matches!((values.next(), values.next()), (Some(Ok(_)), Some(Ok(_))))
}
