//! From events to spans, by the semantic conventions for MCP (open-telemetry/semantic-conventions, `docs/gen-ai/mcp.md`,
//! status Development).

use std::time::Duration;

use serde_json::Value;

use super::{Span, SpanKind, TRACEPARENT, TraceContext};
use crate::{
    Direction, Event, EventKind, Frame, Id, Message, Request, Response, Transport, names::META_VERSION,
    trace_file::ConnectionInfo,
};

/// How many requests may be open; the oldest is forgotten.
const MOST_OPEN: usize = 10_000;

/// Reads the spans of one connection, as its client sees them.
#[derive(Debug)]
pub struct SpanReader {
    /// When the trace began, since 1970.
    began: Duration,
    /// The span of the connection.
    root: Span,
    /// Whether another program has sent the requests: their contexts are those of its own spans.
    is_observer: bool,
    /// A number that no other span has.
    next: fn() -> u64,
    version: Option<String>,
    open: Vec<(Direction, Id, Span)>,
}

impl SpanReader {
    /// A reader of a connection whose trace began at a time since 1970. `next` gives random numbers.
    pub fn new(info: &ConnectionInfo, began: Duration, is_observer: bool, next: fn() -> u64) -> SpanReader {
        let context = TraceContext { trace: u128::from(next()) << 64 | u128::from(next()), span: next() };
        let (transport, protocol) = match info.transport {
            Transport::Stdio | Transport::Memory => ("pipe", None),
            Transport::Http | Transport::Sse => ("tcp", Some("http")),
            Transport::Ws => ("tcp", Some("websocket")),
        };
        let protocol = protocol.map(|name| ("network.protocol.name", name.to_owned()));
        let name = match &info.scenario {
            Some((scenario, cell)) => format!("{scenario}/{cell} {}", info.server),
            None => info.server.clone(),
        };
        let root = Span {
            context,
            parent: None,
            name,
            kind: SpanKind::Internal,
            start: began,
            end: began,
            attributes: std::iter::once(("network.transport", transport.to_owned())).chain(protocol).collect(),
            error: None,
        };
        let version = info.protocol.map(|version| version.to_string());
        SpanReader { began, root, is_observer, next, version, open: Vec::new() }
    }

    /// The spans that end with an event.
    pub fn take(&mut self, event: &Event) -> Vec<Span> {
        let at = self.began + event.at;
        match &event.kind {
            EventKind::Frame(frame) => self.take_frame(frame, at).into_iter().collect(),
            EventKind::Closed(_) => self.close(at),
            _ => Vec::new(),
        }
    }

    fn take_frame(&mut self, Frame { direction, bytes, .. }: &Frame, at: Duration) -> Option<Span> {
        match Message::parse(bytes).ok()? {
            Message::Request(request) => {
                let span = self.begin(*direction, &request, at);
                self.open.push((*direction, request.id, span));
                if self.open.len() > MOST_OPEN {
                    self.open.remove(0);
                }
                None
            }
            Message::Response(response) => {
                let is_asked = |(asked, id, _): &(Direction, Id, Span)| {
                    asked != direction && response.id.as_ref().is_some_and(|it| it == id)
                };
                let place = self.open.iter().position(is_asked)?;
                let (_, _, span) = self.open.remove(place);
                Some(self.end(span, &response, at))
            }
            Message::Notification(_) => None,
        }
    }

    fn begin(&mut self, direction: Direction, request: &Request<'_>, at: Duration) -> Span {
        let params: Value =
            request.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let text = |key: &str| params[key].as_str().map(str::to_owned);
        if let Some(version) = params["_meta"][META_VERSION].as_str() {
            self.version = Some(version.to_owned());
        }
        let kind = if direction == Direction::ClientToServer { SpanKind::Client } else { SpanKind::Server };
        let named = params["_meta"][TRACEPARENT].as_str().and_then(TraceContext::parse);
        let (context, parent) = match named {
            Some(context) if kind == SpanKind::Client && !self.is_observer => {
                // All requests of a connection are of one trace.
                self.root.context.trace = context.trace;
                (context, Some(self.root.context.span))
            }
            Some(of_sender) => (TraceContext { span: (self.next)(), ..of_sender }, Some(of_sender.span)),
            None => (TraceContext { span: (self.next)(), ..self.root.context }, Some(self.root.context.span)),
        };
        let method = request.method.as_ref();
        let id = match &request.id {
            Id::String(id) => id.to_string(),
            id => id.to_json(),
        };
        let mut attributes = self.root.attributes.clone();
        attributes.extend([("mcp.method.name", method.to_owned()), ("jsonrpc.request.id", id)]);
        let (key, target) = match method {
            "tools/call" => ("gen_ai.tool.name", text("name")),
            "prompts/get" => ("gen_ai.prompt.name", text("name")),
            _ => ("", None),
        };
        if method == "tools/call" {
            attributes.push(("gen_ai.operation.name", "execute_tool".to_owned()));
        }
        let name = target.as_ref().map_or_else(|| method.to_owned(), |target| format!("{method} {target}"));
        attributes.extend(target.map(|target| (key, target)));
        // Not a part of the name: there may be many.
        let uri = text("uri").filter(|_| method.starts_with("resources/"));
        attributes.extend(uri.map(|uri| ("mcp.resource.uri", uri)));
        Span { context, parent, name, kind, start: at, end: at, attributes, error: None }
    }

    fn end(&mut self, span: Span, response: &Response<'_>, at: Duration) -> Span {
        let (error, message) = match &response.outcome {
            Err(error) => (Some(error.code.to_string()), error.message.clone()),
            Ok(result) => {
                let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
                if let Some(version) = result["protocolVersion"].as_str() {
                    self.version = Some(version.to_owned());
                }
                (result["isError"].as_bool().filter(|it| *it).map(|_| "tool_error".to_owned()), String::new())
            }
        };
        let mut span = self.ended(span, at, error.map(|error| (error, message)));
        if let Err(error) = &response.outcome {
            span.attributes.push(("rpc.response.status_code", error.code.to_string()));
        }
        span
    }

    fn ended(&self, span: Span, at: Duration, error: Option<(String, String)>) -> Span {
        let (kind, message) = error.unzip();
        let mut attributes = span.attributes;
        attributes.extend(self.version.clone().map(|version| ("mcp.protocol.version", version)));
        attributes.extend(kind.map(|kind| ("error.type", kind)));
        Span { attributes, end: at, error: message, ..span }
    }

    /// The requests without an answer, and the connection.
    fn close(&mut self, at: Duration) -> Vec<Span> {
        let open = std::mem::take(&mut self.open);
        let failed = ("_OTHER".to_owned(), "the connection ended without an answer".to_owned());
        let unanswered = open.into_iter().map(|(_, _, span)| self.ended(span, at, Some(failed.clone())));
        let mut spans: Vec<_> = unanswered.collect();
        spans.push(self.ended(self.root.clone(), at, None));
        spans
    }
}
