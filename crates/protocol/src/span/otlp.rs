//! Spans as JSON of OTLP 1 (opentelemetry-proto, `trace.proto`; OTLP/HTTP: JSON Protobuf Encoding): ids in hexadecimal
//! digits, 64-bit numbers as texts.

use std::time::Duration;

use serde_json::{Value, json};

use super::Span;

/// The body of a request to `/v1/traces`, from this version of the program.
pub fn otlp_json(spans: &[Span], version: &str) -> String {
    let resource = [("service.name", "rehearse".to_owned()), ("service.version", version.to_owned())];
    let spans: Vec<_> = spans.iter().map(span).collect();
    let scope = json!({ "scope": { "name": "rehearse", "version": version }, "spans": spans });
    let resource = json!({ "resource": { "attributes": attributes(&resource) }, "scopeSpans": [scope] });
    json!({ "resourceSpans": [resource] }).to_string()
}

fn span(span: &Span) -> Value {
    let mut json = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": span.kind as u8,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    match span.error.as_deref() {
        Some("") => json["status"] = json!({ "code": 2 }),
        Some(message) => json["status"] = json!({ "code": 2, "message": message }),
        None => {}
    }
    json
}

fn attributes(attributes: &[(&str, String)]) -> Value {
    attributes.iter().map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } })).collect()
}

fn nanoseconds(time: Duration) -> String {
    time.as_nanos().to_string()
}
