//! WebSocket, as a client uses it.

use super::{
    super::{Judge, ws::has_several},
    common::{header, header_text, heads},
    completes, reinitializes,
};

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-ws.handshake.subprotocol", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.status == Some(101)) {
            let offered = header(http, "sec-websocket-protocol");
            let is_offered = offered.as_deref().is_some_and(|all| all.split(',').any(|it| it.trim() == "mcp"));
            j.check_at(is_offered, None, heads(http), || header_text("Sec-WebSocket-Protocol", offered.as_deref()));
        }
    }),
    ("client-ws.frame.fragmented", |e, j| completes(e, j, "pieces")),
    ("client-ws.close.handled", |e, j| {
        for connection in e.connections.iter().skip(1).filter(|_| !e.is_modern()) {
            reinitializes(connection, j);
        }
        j.untested("the client connected once only");
    }),
    ("client-ws.frame.text", |e, j| {
        for frame in e.sent().filter(|it| !it.is_in_batch) {
            let is_one = !frame.value.is_null() || !has_several(frame.bytes);
            j.check(is_one, frame, || "several messages in one".to_owned());
        }
    }),
];
