//! What a case becomes on the wire.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use rehearse_client::WireRequest;
use rehearse_conformance::{Case, CaseBody};
use rehearse_protocol::message;
use serde_json::{Map, Value, json};

use super::ProbeConnection;

impl ProbeConnection {
    pub(super) fn http_request(&self, case: &Case, name: Option<Arc<str>>, body: Option<Bytes>) -> WireRequest {
        let method = Method::from_bytes(case.http_method.as_bytes()).unwrap_or(Method::POST);
        let (path, has_title_case, is_fresh) = (case.path.clone(), case.has_title_case, self.may_be_unread);
        let headers = self.headers(case, body.as_deref());
        WireRequest { method, path, headers, has_title_case, is_fresh, body, case: name }
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
        let params = self.with_meta(params.clone(), case, is_request);
        let params = (!params.is_null()).then(|| params.to_string());
        if is_request {
            let id = self.exchange.next_id();
            let bytes = message::request(&id, method, params.as_deref());
            return (Some(json!(id)), Some(bytes));
        }
        let bytes = match params {
            Some(params) => message::notification(method, &params),
            None => message::bare_notification(method),
        };
        (None, Some(bytes))
    }

    /// The params with the `_meta` of the version, as the case changes it.
    fn with_meta(&self, mut params: Value, case: &Case, is_request: bool) -> Value {
        let mut meta = if is_request { self.exchange.meta() } else { Map::new() };
        if meta.is_empty() && case.meta.is_empty() {
            return params;
        }
        if params.is_null() {
            params = json!({});
        }
        let Some(members) = params.as_object_mut() else { return params };
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
        let method = match &case.body {
            CaseBody::Request { method, .. } => Some(method.as_str()),
            _ => None,
        };
        let mut headers = match Method::from_bytes(case.http_method.as_bytes()) {
            Ok(Method::POST) | Err(_) => self.exchange.headers(method, body.unwrap_or_default()),
            Ok(other) => self.exchange.session_headers(&other),
        };
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
