//! Routing HTTP requests to the transports.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{Shared, sse, streamable, ws};
use crate::{
    mock::journal::Handling,
    transport::{
        Transport,
        server::{Body, Request, Response},
    },
    wire::{Id, MAX_FRAME, RpcError, message},
};

pub(super) async fn handle(shared: Arc<Shared>, request: Request) -> Response {
    let transport = match request.uri().path() {
        "/sse" | "/messages" => Transport::Sse,
        "/ws" => Transport::Ws,
        _ => Transport::Http,
    };
    if let Err(why) = shared.hosts.check(request.headers(), request.uri()) {
        return shared.refuse(transport, StatusCode::FORBIDDEN, &why);
    }
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/mcp") => streamable::post(shared, request).await,
        (&Method::GET, "/mcp") => streamable::listen(&shared, request.headers()),
        (&Method::DELETE, "/mcp") => streamable::delete(&shared, request.headers()),
        (_, "/mcp") => shared.not_allowed(transport, "GET, POST, DELETE"),
        (&Method::GET, "/sse") => sse::open(shared, request.headers()),
        (_, "/sse") => shared.not_allowed(transport, "GET"),
        (&Method::POST, "/messages") => sse::post(shared, request).await,
        (_, "/messages") => shared.not_allowed(transport, "POST"),
        (&Method::GET, "/ws") => ws::open(shared, request),
        (_, "/ws") => shared.not_allowed(transport, "GET"),
        (_, path) => {
            let why = format!("there is nothing at {path}; this mock serves /mcp, /sse and /ws");
            shared.refuse(transport, StatusCode::NOT_FOUND, &why)
        }
    }
}

impl Shared {
    /// Refuses a request before its body is looked at, with an error response that has no id.
    pub(super) fn refuse(&self, transport: Transport, status: StatusCode, why: &str) -> Response {
        self.refuse_message(transport, status, &Bytes::new(), None, why)
    }

    /// Refuses a message for a reason of the transport.
    pub(super) fn refuse_message(
        &self,
        transport: Transport,
        status: StatusCode,
        bytes: &Bytes,
        id: Option<&Id>,
        why: &str,
    ) -> Response {
        let handling = Handling::Refused(format!("{}: {why}", status.as_u16()));
        self.engine.journal().record(self.started.elapsed(), transport, bytes, handling);
        json(status, message::error(id, &RpcError::new(message::INVALID_REQUEST, why)))
    }

    pub(super) fn not_allowed(&self, transport: Transport, allowed: &'static str) -> Response {
        let why = format!("the method is not allowed here; allowed are {allowed}");
        let mut response = self.refuse(transport, StatusCode::METHOD_NOT_ALLOWED, &why);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        response
    }

    /// The body of a POST that must be JSON.
    ///
    /// # Errors
    /// The response that refuses it.
    pub(super) async fn read_json(
        &self,
        transport: Transport,
        request: Request,
    ) -> Result<(HeaderMap, Bytes), Response> {
        let (parts, body) = request.into_parts();
        if !has_media_type(&parts.headers, header::CONTENT_TYPE, "application/json") {
            let why = "the Content-Type must be application/json";
            return Err(self.refuse(transport, StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        match Limited::new(body, MAX_FRAME).collect().await {
            Ok(body) => Ok((parts.headers, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => {
                let why = format!("a message of more than {MAX_FRAME} bytes");
                Err(self.refuse(transport, StatusCode::PAYLOAD_TOO_LARGE, &why))
            }
            Err(error) => {
                let why = format!("the body broke off: {error}");
                Err(self.refuse(transport, StatusCode::BAD_REQUEST, &why))
            }
        }
    }
}

/// Whether a header lists the media type, or a range that covers it.
pub(super) fn has_media_type(headers: &HeaderMap, name: header::HeaderName, wanted: &str) -> bool {
    let kind = wanted.split('/').next().unwrap_or_default();
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let range = range.split(';').next().unwrap_or_default().trim();
        range.eq_ignore_ascii_case(wanted)
            || range == "*/*"
            || range.strip_suffix("/*").is_some_and(|prefix| prefix.eq_ignore_ascii_case(kind))
    })
}

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

pub(super) fn json(status: StatusCode, frame: Bytes) -> Response {
    let mut response = Response::new(Body::whole(frame));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A stream of events; proxies are asked not to buffer it (2026-07-28, Streamable HTTP: Receiving Messages).
pub(super) fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
