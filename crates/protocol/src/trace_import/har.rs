//! HTTP Archive 1.2, of browsers and proxies.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::{
    Format,
    content::{Content, items, text},
    http_exchange::{HttpExchange, headers, split},
    recording::{Place, Recording},
    time::{duration, instant},
};
use crate::{Direction, Transport};

pub(super) const FORMAT: Format = Format {
    name: "har",
    source: "HTTP Archive 1.2, of browsers and proxies",
    date: "2012-12-04",
    mark: "an object with `log.entries`",
    has_mark: |content| content.whole["log"]["entries"].is_array(),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    for (entry, number) in items(&content.whole["log"]["entries"]).zip(0..) {
        let (request, response) = (&entry["request"], &entry["response"]);
        let url = text(&request["url"]);
        // mcpsnoop writes only the params and the result of a message.
        if url.starts_with("mcp://") {
            recording.lose("calls of a HAR by mcpsnoop, which has no whole messages: import its JSON export");
            continue;
        }
        let at = instant(text(&entry["startedDateTime"]));
        // Of Chrome.
        for message in items(&entry["_webSocketMessages"]) {
            let from = if message["type"] == "send" { Direction::ClientToServer } else { Direction::ServerToClient };
            let at = duration(&message["time"], 1.0);
            let place = Place { session: url, at, ..Place::new(split(url).0, Transport::Ws) };
            recording.message(place, from, &message["data"]);
        }
        let status = response["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let exchange = HttpExchange {
            at,
            took: duration(&entry["time"], 1000.0).unwrap_or_default(),
            method: text(&request["method"]),
            url,
            headers: pairs(&request["headers"]),
            body: text(&request["postData"]["text"]),
            status: status.and_then(|status| StatusCode::from_u16(status).ok()),
            response_headers: pairs(&response["headers"]),
            response: body(&response["content"]),
        };
        if entry["_webSocketMessages"].is_null() {
            exchange.add(number, recording);
        }
    }
}

fn pairs(list: &Value) -> HeaderMap {
    headers(items(list).map(|it| (text(&it["name"]), text(&it["value"]))))
}

fn body(content: &Value) -> String {
    let body = text(&content["text"]);
    if content["encoding"] != "base64" {
        return body.to_owned();
    }
    BASE64_STANDARD.decode(body).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
