//! A request as the server had to understand it.

use std::collections::BTreeMap;

use bytes::Bytes;
use rehearse_protocol::{Era, Id, Request};
use serde_json::{Value as Json, json, value::RawValue};

use super::script::is_odd;

/// The requests that may be answered with questions (2026-07-28, Multi Round-Trip Requests: Supported Requests).
const INTERACTIVE: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

#[derive(Debug, Clone)]
pub(crate) struct ClientRequest {
    /// The number of the client.
    pub client: usize,
    pub era: Era,
    pub id: Id,
    pub method: String,
    /// What is called, read or got.
    pub target: String,
    pub params: Json,
}

impl ClientRequest {
    pub(crate) fn new(request: &Request<'_>, client: usize, era: Era) -> ClientRequest {
        let params = request.params.map(|params| shallow(params.get())).unwrap_or_default();
        let target = ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str()).unwrap_or_default();
        let method = request.method.clone().into_owned();
        ClientRequest { client, era, id: request.id.clone(), method, target: target.to_owned(), params }
    }

    /// Whether the script may answer this against the protocol.
    pub(crate) fn is_odd(&self) -> bool {
        is_odd(&self.method) || (INTERACTIVE.contains(&&*self.method) && is_odd(&self.target))
    }

    /// The request without what is nested too deeply to be read.
    pub(crate) fn frame(&self) -> Bytes {
        let frame = json!({ "jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params });
        frame.to_string().into()
    }
}

/// An object whose members are there as far as they can be read: not where they are nested too deeply.
fn shallow(text: &str) -> Json {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let read = |value: &RawValue| serde_json::from_str::<Json>(value.get()).unwrap_or_default();
    members.into_iter().map(|(name, value)| (name, read(value))).collect()
}
