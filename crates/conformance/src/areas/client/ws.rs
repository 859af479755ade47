//! WebSocket, as a client uses it.

use super::super::Judge;
use super::super::ws::has_several;
use super::common::headers;
use super::{completes, reinitializes};
use crate::areas::query::Query;

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-ws.handshake.subprotocol", |e, j| {
        let opened = e.exchanges().filter(|(_, http)| http.status == Some(101));
        headers(opened, j, ("sec-websocket-protocol", "Sec-WebSocket-Protocol"), |offered| {
            offered.is_some_and(|all| all.split(',').any(|it| it.trim() == "mcp"))
        });
    }),
    ("client-ws.frame.fragmented", |e, j| completes(e, j, "pieces")),
    ("client-ws.close.handled", |e, j| {
        for connection in e.connections.iter().skip(1).filter(|_| !e.is_modern()) {
            reinitializes(connection, j);
        }
    }),
    ("client-ws.frame.text", |e, j| {
        let frames = e.sent().filter(|it| !it.is_in_batch);
        frames.must(j, |frame| !frame.value.is_null() || !has_several(frame.bytes), |_| "several messages in one");
    }),
];
