//! Spans of OpenTelemetry: read from the events of a connection, and written as OTLP.

mod otlp;
mod reader;

use std::{fmt, time::Duration};

pub use otlp::otlp_json;
pub use reader::SpanReader;

/// The key of a context in the `_meta` of requests (2026-07-28, Base Protocol: OpenTelemetry trace context).
pub const TRACEPARENT: &str = "traceparent";

/// A span of a trace, as `traceparent` names it (W3C Trace Context, level 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: u128,
    pub span: u64,
}

impl TraceContext {
    /// What a `traceparent` names; `None` if it is not one.
    ///
    /// ```
    /// use rehearse_protocol::span::TraceContext;
    ///
    /// let context = TraceContext { trace: 0x4bf92f3577b34da6a3ce929d0e0e4736, span: 0xf067aa0ba902b7 };
    /// assert_eq!(context.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    /// assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
    /// assert_eq!(TraceContext::parse("00-0-0-01"), None);
    /// ```
    pub fn parse(text: &str) -> Option<TraceContext> {
        let parts: Vec<_> = text.split('-').collect();
        let [_, trace, span, _, ..] = parts[..] else { return None };
        let context = TraceContext {
            trace: u128::from_str_radix(trace, 16).ok().filter(|_| trace.len() == 32)?,
            span: u64::from_str_radix(span, 16).ok().filter(|_| span.len() == 16)?,
        };
        Some(context).filter(|it| it.trace != 0 && it.span != 0)
    }
}

impl fmt::Display for TraceContext {
    /// As a `traceparent` of a trace that is recorded.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

/// A request with its response, or a whole connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub context: TraceContext,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanKind,
    /// Since 1970.
    pub start: Duration,
    pub end: Duration,
    pub attributes: Vec<(&'static str, String)>,
    /// Set if it failed; empty if there is no more to say.
    pub error: Option<String>,
}

/// Who waits for whom, with the numbers of OTLP (`SpanKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A connection.
    Internal = 1,
    /// A request of the server.
    Server = 2,
    /// A request of the client.
    Client = 3,
}

#[cfg(test)]
mod tests;
