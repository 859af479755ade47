use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::{Closed, Direction, Event, EventKind, Frame, Transport, trace_file::ConnectionInfo};

/// 1, 2, 3 …
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The spans of frames, one each second; those of the server begin with `<`.
fn spans(reader: &mut SpanReader, frames: &[&str]) -> Vec<Span> {
    let event = |(second, frame): (u64, &&str)| {
        let (direction, text) = match frame.strip_prefix('<') {
            Some(text) => (Direction::ServerToClient, text),
            None => (Direction::ClientToServer, *frame),
        };
        let at = Duration::from_secs(second);
        let frame = Frame::new(direction, at, Bytes::copy_from_slice(text.as_bytes()));
        Event { at, exchange: None, kind: EventKind::Frame(frame) }
    };
    let events: Vec<_> = (1..).zip(frames).map(event).collect();
    let closed = EventKind::Closed(Closed::by_client("the end"));
    let closed = Event { at: Duration::from_secs(60), exchange: None, kind: closed };
    events.iter().chain([&closed]).flat_map(|event| reader.take(event)).collect()
}

fn attribute<'s>(span: &'s Span, key: &str) -> Option<&'s str> {
    span.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
}

#[test]
fn a_call_is_a_span_with_the_context_that_it_was_sent_with() {
    let info = ConnectionInfo::new("weather", Transport::Http);
    let mut reader = SpanReader::new(&info, Duration::from_secs(1000), false, || NEXT.fetch_add(1, Ordering::Relaxed));
    let found = spans(
        &mut reader,
        &[
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"_meta":{"traceparent":"00-000000000000000000000000000000aa-00000000000000b1-01"}}}"#,
            r#"<{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"now","_meta":{"traceparent":"00-000000000000000000000000000000aa-00000000000000b2-01"}}}"#,
            r#"<{"jsonrpc":"2.0","id":"a","method":"roots/list"}"#,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no roots"}}"#,
            r#"<{"jsonrpc":"2.0","id":"a","result":{"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"a://b"}}"#,
        ],
    );
    let shown: Vec<_> = found
        .iter()
        .map(|it| (it.name.as_str(), it.kind as u8, it.context.trace, it.context.span, it.parent, it.end.as_secs()))
        .collect();
    let expected = [
        ("initialize", 3, 0xaa, 0xb1, Some(3), 1002),
        ("roots/list", 2, 0xaa, 4, Some(3), 1005),
        ("tools/call now", 3, 0xaa, 0xb2, Some(3), 1006),
        ("resources/read", 3, 0xaa, 5, Some(3), 1060),
        ("weather", 1, 0xaa, 3, None, 1060),
    ];
    assert_eq!(shown, expected);
    let [_, roots, call, read, root] = &found[..] else { panic!("{found:?}") };
    assert_eq!((roots.error.as_deref(), attribute(roots, "error.type")), (Some("no roots"), Some("-32601")));
    assert_eq!((call.error.as_deref(), attribute(call, "error.type")), (Some(""), Some("tool_error")));
    assert_eq!((attribute(read, "error.type"), attribute(read, "mcp.resource.uri")), (Some("_OTHER"), Some("a://b")));
    assert_eq!(attribute(call, "jsonrpc.request.id"), Some("a"));
    assert_eq!((attribute(call, "mcp.protocol.version"), &root.error), (Some("2025-11-25"), &None));
    let json: serde_json::Value = serde_json::from_str(&otlp_json(&found[2..3], "1.2.3")).expect("JSON");
    let span = &json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "000000000000000000000000000000aa");
    assert_eq!(
        (&span["parentSpanId"], &span["startTimeUnixNano"]),
        (&json!("0000000000000003"), &json!("1003000000000"))
    );
    assert_eq!((&span["kind"], &span["status"]), (&json!(3), &json!({ "code": 2 })));
    let tool = json!({ "key": "gen_ai.tool.name", "value": { "stringValue": "now" } });
    assert!(span["attributes"].as_array().is_some_and(|all| all.contains(&tool)), "{span}");
}
