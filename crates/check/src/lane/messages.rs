//! What a case becomes on the wire.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use rehearse_client::{WireRequest, mirrored_headers};
use rehearse_conformance::{Case, CaseBody};
use rehearse_protocol::{Era, Version};
use serde_json::{Map, Value, json};

use super::{Lane, SESSION, client_info};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

impl Lane {
    pub(super) fn http_request(&self, case: &Case, name: Option<Arc<str>>, body: Option<Bytes>) -> WireRequest {
        let method = Method::from_bytes(case.http_method.as_bytes()).unwrap_or(Method::POST);
        let (path, has_title_case) = (case.path.clone(), case.has_title_case);
        WireRequest { method, path, headers: self.headers(case, body.as_deref()), has_title_case, body, case: name }
    }

    /// The id and the bytes of a case.
    pub(super) fn body(&mut self, case: &Case) -> (Option<Value>, Option<Bytes>) {
        let (method, params, is_request) = match &case.body {
            CaseBody::Empty => return (None, None),
            CaseBody::Bytes(bytes) => {
                let id = serde_json::from_slice::<Value>(bytes).ok().and_then(|value| value.get("id").cloned());
                return (id.filter(|id| id.is_string() || id.is_number()), Some(bytes.clone()));
            }
            CaseBody::Request { method, params } => (method, params, true),
            CaseBody::Notification { method, params } => (method, params, false),
        };
        let mut message = Map::new();
        message.insert("jsonrpc".to_owned(), json!("2.0"));
        let id = is_request.then(|| json!(self.next_id));
        if let Some(id) = &id {
            self.next_id += 1;
            message.insert("id".to_owned(), id.clone());
        }
        message.insert("method".to_owned(), json!(method));
        let params = self.with_meta(params.clone(), case, is_request);
        if !params.is_null() {
            message.insert("params".to_owned(), params);
        }
        (id, Some(Value::Object(message).to_string().into()))
    }

    /// The params with the `_meta` of the version, as the case changes it.
    fn with_meta(&self, mut params: Value, case: &Case, is_request: bool) -> Value {
        let is_modern = self.version.era() == Era::Modern && is_request;
        if !is_modern && case.meta.is_empty() {
            return params;
        }
        if params.is_null() {
            params = json!({});
        }
        let Some(members) = params.as_object_mut() else { return params };
        let mut meta = Map::new();
        if is_modern {
            meta.insert("io.modelcontextprotocol/protocolVersion".into(), json!(self.version.as_str()));
            meta.insert("io.modelcontextprotocol/clientInfo".into(), client_info());
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), self.client_capabilities.clone());
        }
        if let Some(Value::Object(own)) = members.remove("_meta") {
            meta.extend(own);
        }
        for (key, value) in &case.meta {
            match value {
                Some(value) => drop(meta.insert(key.clone(), value.clone())),
                None => drop(meta.remove(key)),
            }
        }
        if !meta.is_empty() {
            members.insert("_meta".to_owned(), Value::Object(meta));
        }
        params
    }

    pub(super) fn headers(&self, case: &Case, body: Option<&[u8]>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if case.http_method == "POST" {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        } else if case.http_method == "GET" {
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        }
        let is_initialize = matches!(&case.body, CaseBody::Request { method, .. } if method == "initialize");
        if self.version.era() == Era::Modern {
            headers.extend(body.map(mirrored_headers).unwrap_or_default());
        }
        if self.version.era() == Era::Modern || (self.version > Version::V2024_11_05 && !is_initialize) {
            headers.insert(VERSION, HeaderValue::from_static(self.version.as_str()));
        }
        if let Some(session) = self.session.as_ref().filter(|_| !is_initialize) {
            headers.insert(SESSION, session.clone());
        }
        for (number, (name, value)) in case.headers.iter().enumerate() {
            let is_second = case.headers.iter().take(number).any(|(before, _)| before == name);
            let Ok(name) = name.parse::<HeaderName>() else { continue };
            match value.as_deref().map(HeaderValue::from_str) {
                Some(Ok(value)) if is_second => drop(headers.append(name, value)),
                Some(Ok(value)) => drop(headers.insert(name, value)),
                Some(Err(_)) => {}
                None => drop(headers.remove(name)),
            }
        }
        headers
    }
}
