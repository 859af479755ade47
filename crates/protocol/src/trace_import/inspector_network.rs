//! The HTTP requests that the MCP Inspector exports.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::{
    Format,
    content::{Content, items, text},
    http_exchange::{HttpExchange, headers},
    recording::Recording,
    time::{duration, instant},
};

pub(super) const FORMAT: Format = Format {
    name: "inspector-network",
    source: "the export of the network by MCP Inspector 2.12",
    date: "2026-10-21",
    mark: "an array whose items have `url` and `requestHeaders`",
    has_mark: |content| content.items_have(&["url", "requestHeaders"]),
    read,
};

fn read(content: &Content, recording: &mut Recording) {
    for (entry, number) in items(&content.whole).zip(0..) {
        let status = entry["responseStatus"].as_u64().and_then(|status| u16::try_from(status).ok());
        let exchange = HttpExchange {
            at: instant(text(&entry["timestamp"])),
            took: duration(&entry["duration"], 1000.0).unwrap_or_default(),
            method: text(&entry["method"]),
            url: text(&entry["url"]),
            headers: pairs(&entry["requestHeaders"]),
            body: text(&entry["requestBody"]),
            status: status.and_then(|status| StatusCode::from_u16(status).ok()),
            response_headers: pairs(&entry["responseHeaders"]),
            response: text(&entry["responseBody"]).to_owned(),
        };
        exchange.add(number, recording);
    }
}

fn pairs(object: &Value) -> HeaderMap {
    headers(object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), text(value))))
}
