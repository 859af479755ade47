//! Requests that are prepared once, so that only the id changes while a server is measured.

use bytes::Bytes;
use http::HeaderMap;
use rehearse_client::{ClientInfo, Exchange, OutgoingRequest};
use rehearse_protocol::{Operation, Version};
use serde_json::Map;

/// A request without its id.
#[derive(Clone, Debug)]
pub(crate) struct RequestTemplate {
    before: String,
    after: String,
    /// What is after the span of a context, which is another one in each request.
    rest: Option<String>,
    /// The headers of the protocol, without those of a session.
    headers: HeaderMap,
    method: String,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct PreparedRequest<'t> {
    pub(crate) id: u64,
    pub(crate) body: Bytes,
    /// The headers of the protocol, without those of a session.
    pub(crate) headers: &'t HeaderMap,
    pub(crate) method: &'t str,
}

/// The span of a context that a template does not know yet.
pub(crate) const OPEN_SPAN: u64 = u64::MAX;

fn hexadecimal(span: u64) -> String {
    format!("{span:016x}")
}

/// A session as a benchmark opens it: with a client that has no capabilities.
pub(crate) fn exchange(version: Version) -> Exchange {
    let client =
        ClientInfo { name: "rehearse-bench".to_owned(), title: None, version: env!("CARGO_PKG_VERSION").to_owned() };
    Exchange::new(client, Map::new(), version)
}

impl RequestTemplate {
    /// A request in a version.
    pub(crate) fn new(Operation { method, params }: Operation, version: Version) -> RequestTemplate {
        let mut exchange = exchange(version);
        let request = exchange.request(&method, Some(params), None);
        RequestTemplate::of(&method, &request, &exchange)
    }

    /// The same with any id.
    pub(crate) fn of(method: &str, request: &OutgoingRequest, exchange: &Exchange) -> RequestTemplate {
        let text = String::from_utf8_lossy(&request.bytes);
        let marked = format!(r#""id":{},"#, request.id.to_json());
        // The id comes before anything that a caller chooses.
        let (before, after) = text.split_once(&marked).unwrap_or((&text, ""));
        let (before, after) = (format!(r#"{before}"id":"#), format!(",{after}"));
        let (after, rest) = match after.split_once(&hexadecimal(OPEN_SPAN)) {
            Some((after, rest)) => (after.to_owned(), Some(rest.to_owned())),
            None => (after, None),
        };
        let headers = exchange.headers(Some(method), &request.bytes);
        RequestTemplate { before, after, rest, headers, method: method.to_owned() }
    }

    pub(crate) fn request(&self, id: u64) -> PreparedRequest<'_> {
        let mut body = [&*self.before, &id.to_string(), &self.after].concat();
        if let Some(rest) = &self.rest {
            body += &hexadecimal(rand::random_range(1..OPEN_SPAN));
            body += rest;
        }
        let body = body.into();
        PreparedRequest { id, body, headers: &self.headers, method: &self.method }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use rehearse_protocol::span::{TRACEPARENT, TraceContext};

    #[test]
    fn only_the_id_changes() {
        let template = RequestTemplate::new(Operation::call("echo", None), Version::LATEST);
        let parse = |id| serde_json::from_slice::<Value>(&template.request(id).body).expect("JSON");
        let (first, mut second) = (parse(1), parse(2));
        assert_eq!(second["id"], 2);
        assert_eq!(second["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        second["id"] = json!(1);
        assert_eq!(first, second);
        assert_eq!(template.request(1).headers["mcp-name"], "echo");
        let context = TraceContext { trace: 1, span: OPEN_SPAN }.to_string();
        let traced = Operation::new("ping", json!({ "_meta": { TRACEPARENT: context } }));
        let traced = RequestTemplate::new(traced, Version::LATEST_LEGACY);
        let span = || -> Option<TraceContext> {
            let body: Value = serde_json::from_slice(&traced.request(1).body).ok()?;
            TraceContext::parse(body["params"]["_meta"][TRACEPARENT].as_str()?)
        };
        assert!(span().is_some_and(|it| it.trace == 1 && it.span != OPEN_SPAN) && span() != span());
        let legacy = RequestTemplate::new(Operation::ping(), Version::LATEST_LEGACY);
        assert_eq!(&legacy.request(7).body[..], br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#);
        assert_eq!(legacy.request(7).headers["mcp-protocol-version"], Version::LATEST_LEGACY.as_str());
        assert!(!legacy.request(7).headers.contains_key("mcp-method"));
    }
}
