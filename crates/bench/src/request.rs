//! Requests that are prepared once, so that only the id changes while a server is measured.

use bytes::Bytes;
use http::HeaderMap;
use rehearse_client::mirrored_headers;
use rehearse_protocol::{Era, Version};
use serde_json::{Value, json};

/// A request without its id.
#[derive(Clone, Debug)]
pub(crate) struct RequestTemplate {
    before: String,
    after: String,
    /// The headers that mirror the body.
    headers: HeaderMap,
    method: &'static str,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct PreparedRequest<'t> {
    pub(crate) id: u64,
    pub(crate) body: Bytes,
    /// The headers that mirror the body.
    pub(crate) headers: &'t HeaderMap,
    pub(crate) method: &'static str,
}

pub(crate) fn client_info() -> Value {
    json!({ "name": "rehearse-bench", "version": env!("CARGO_PKG_VERSION") })
}

impl RequestTemplate {
    /// A request in a version. A modern one names its version and client (2026-07-28, Base Protocol: `_meta`).
    pub(crate) fn new(method: &'static str, mut params: Value, version: Version) -> RequestTemplate {
        if version.era() == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": version.as_str(),
                "io.modelcontextprotocol/clientInfo": client_info(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let before = r#"{"jsonrpc":"2.0","id":"#.to_owned();
        let after = format!(r#","method":"{method}","params":{params}}}"#);
        let headers = match version.era() {
            Era::Modern => mirrored_headers(format!("{before}0{after}").as_bytes()),
            Era::Legacy => HeaderMap::new(),
        };
        RequestTemplate { before, after, headers, method }
    }

    pub(crate) fn request(&self, id: u64) -> PreparedRequest<'_> {
        let body = [&*self.before, &id.to_string(), &self.after].concat().into();
        PreparedRequest { id, body, headers: &self.headers, method: self.method }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_changes() {
        let template = RequestTemplate::new("tools/call", json!({ "name": "echo" }), Version::LATEST);
        let parse = |id| serde_json::from_slice::<Value>(&template.request(id).body).expect("JSON");
        let (first, mut second) = (parse(1), parse(2));
        assert_eq!(second["id"], 2);
        assert_eq!(second["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        second["id"] = json!(1);
        assert_eq!(first, second);
        assert_eq!(template.request(1).headers["mcp-name"], "echo");
        let legacy = RequestTemplate::new("ping", json!({}), Version::LATEST_LEGACY);
        assert_eq!(&legacy.request(7).body[..], br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#);
        assert!(legacy.request(7).headers.is_empty());
    }
}
