//! One HTTP request of a recording, with its response.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::recording::{Place, Recording};
use crate::{
    Direction::{ClientToServer, ServerToClient},
    EventKind, Transport,
    http::{is_event_stream, is_json_rpc},
    names::SESSION_HEADER,
    sse::Decoder,
};

/// As the reader of a format has found it.
#[derive(Debug)]
pub(super) struct HttpExchange<'a> {
    pub(super) at: Option<Duration>,
    pub(super) took: Duration,
    pub(super) method: &'a str,
    pub(super) url: &'a str,
    pub(super) headers: HeaderMap,
    pub(super) body: &'a str,
    /// `None` if no response came.
    pub(super) status: Option<StatusCode>,
    pub(super) response_headers: HeaderMap,
    pub(super) response: String,
}

/// The headers of a recording. Those of HTTP/2 and HTTP/3 whose names begin with a colon are none of HTTP.
pub(super) fn headers<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let header = |(name, value): (&str, &str)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::from_str(value.trim()).ok()?))
    };
    pairs.filter_map(header).collect()
}

impl HttpExchange<'_> {
    /// Adds the exchange, if it is one of MCP: one side has sent a message, or a session was ended. `number` is its own.
    pub(super) fn add(self, number: u32, recording: &mut Recording) {
        let events = self.events();
        let session = |headers: &HeaderMap| Some(headers.get(SESSION_HEADER)?.to_str().ok()?.to_owned());
        let own = session(&self.headers).or_else(|| session(&self.response_headers));
        let is_stream_of_mcp = events.iter().any(|(name, data)| name == "endpoint" || is_json_rpc(data));
        let is_of_mcp = is_json_rpc(self.body.as_bytes()) || is_json_rpc(self.response.as_bytes()) || is_stream_of_mcp;
        if !is_of_mcp && session(&self.headers).is_none() {
            return recording.lose("HTTP requests that are not of MCP");
        }
        let (server, target) = split(self.url);
        let place = Place {
            session: own.as_deref().unwrap_or_default(),
            at: self.at,
            exchange: Some(number),
            ..Place::new(server, Transport::Http)
        };
        let answered = Place { at: self.at.map(|at| at + self.took), ..place };
        let Ok(method) = Method::try_from(self.method) else {
            return recording.lose("HTTP requests without a method");
        };
        let is_post = method == Method::POST;
        recording.event(place, EventKind::HttpRequest { method, target: target.to_owned(), headers: self.headers });
        if is_json_rpc(self.body.as_bytes()) {
            recording.frame(place, ClientToServer, self.body);
        } else if !self.body.is_empty() {
            let bytes = Bytes::copy_from_slice(self.body.as_bytes());
            recording.event(place, EventKind::HttpBody { direction: ClientToServer, bytes });
        }
        let Some(status) = self.status else { return recording.lose("HTTP requests without a response") };
        recording.event(answered, EventKind::HttpResponse { status, headers: self.response_headers });
        if self.response.is_empty() && status == StatusCode::OK {
            recording.lose("bodies of HTTP responses");
        }
        for (name, data) in &events {
            if name == "endpoint" {
                // HTTP+SSE: the answers to all requests come on this stream.
                recording.set_transport(&answered, Transport::Sse);
            } else if is_json_rpc(data) {
                recording.frame(answered, ServerToClient, &String::from_utf8_lossy(data));
            }
        }
        if events.is_empty() && is_json_rpc(self.response.as_bytes()) {
            recording.frame(answered, ServerToClient, &self.response);
        } else if events.is_empty() && !self.response.is_empty() {
            recording.event(answered, EventKind::HttpBody { direction: ServerToClient, bytes: self.response.into() });
        }
        if is_post {
            recording.event(answered, EventKind::HttpEnd { is_whole: true });
        }
    }

    /// The events of a stream: the type of each, and its data.
    fn events(&self) -> Vec<(String, Bytes)> {
        let mut events = Vec::new();
        if is_event_stream(&self.response_headers) {
            let mut decoder = Decoder::default();
            // What is too large ends the stream. The last event may lack its empty line.
            let whole = decoder.push(self.response.as_bytes(), &mut events);
            let _ = whole.and_then(|()| decoder.push(b"\n\n", &mut events));
        }
        events.into_iter().filter_map(|event| Some((event.event.unwrap_or_default(), event.data?))).collect()
    }
}

/// The authority of a URL, and its path and query.
pub(super) fn split(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (server, _) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
    let target = rest.strip_prefix(server).filter(|target| !target.is_empty());
    (server, target.unwrap_or("/"))
}
