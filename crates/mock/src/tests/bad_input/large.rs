//! What is too large, nested too deeply, or no UTF-8.

use super::*;
use crate::tests::bad_input::line::Line;

const LARGE: usize = 20 << 20;

fn echo(text: &str) -> String {
    modern(1, "tools/call", json!({ "name": "echo", "arguments": { "text": text } })).to_string()
}

async fn post(server: &MockServer, frame: &[u8]) -> Reply {
    let mut headers = modern::mirrored(frame);
    headers.retain(|(name, _)| !["mcp-method", "mcp-name"].contains(name));
    headers.extend([("mcp-method", "tools/call".to_owned()), ("mcp-name", "echo".to_owned())]);
    modern::post(&server.address().to_string(), frame, &headers).await
}

/// Neither version limits a message; this server takes 32 MiB.
#[tokio::test]
async fn a_message_of_20_megabytes_is_answered() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    let frame =
        modern(1, "tools/call", json!({ "name": "plain", "arguments": { "text": "x".repeat(LARGE) } })).to_string();
    let frames = Line::pipe(&engine).exchange(frame.as_bytes()).await;
    assert_eq!(frames[0]["result"]["content"][0]["text"], "x");
    let headers = modern::mirrored(frame.as_bytes());
    let reply = modern::post(&server.address().to_string(), frame.as_bytes(), &headers).await;
    assert_eq!(reply.frames[0]["result"]["content"][0]["text"], "x");
}

#[tokio::test]
async fn a_message_of_more_than_32_megabytes_is_refused_and_the_next_one_is_answered() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    let frame = vec![b' '; (32 << 20) + 1];
    let mut line = Line::pipe(&engine);
    let frames = line.exchange(&frame).await;
    assert_eq!((frames.len(), &frames[0]["error"]["code"]), (1, &json!(-32_600)), "{frames:?}");
    assert_eq!(post(&server, &frame).await.status, 413, "RFC 9110, 15.5.14");
    assert_eq!(post(&server, echo("x").as_bytes()).await.status, 200);
}

/// JSON has no limit either; readers may set one (RFC 8259, 9).
#[tokio::test]
async fn ten_thousand_levels_are_an_error_or_nothing_but_never_the_end() {
    const LEVELS: usize = 10_000;
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    let (lists, objects) = (["[".repeat(LEVELS), "]".repeat(LEVELS)], [r#"{"a":"#.repeat(LEVELS), "}".repeat(LEVELS)]);
    for [open, close] in [lists, objects] {
        let deep = format!("{open}1{close}");
        let inside = |frame: Json| frame.to_string().replace("\"DEEP\"", &deep);
        let with_deep = |name: &str| json!({ "name": name, "arguments": { "text": "DEEP" } });
        for (what, frame, expected) in [
            ("the frame itself", deep.clone(), json!([-32_600])),
            ("half of it", open.clone(), json!([-32_700])),
            ("an argument that is looked at", inside(modern(1, "tools/call", with_deep("echo"))), json!([-32_602])),
            ("an unused argument", inside(modern(1, "tools/call", with_deep("plain"))), json!([null])),
            ("an unknown member of params", inside(modern(1, "tools/list", json!({ "x": "DEEP" }))), json!([null])),
            (
                "an answer",
                inside(modern(1, "tools/call", json!({ "name": "ask", "inputResponses": { "guest": "DEEP" } }))),
                json!([-32_602]),
            ),
            ("an answer to nothing", inside(json!({ "jsonrpc": "2.0", "id": 1, "result": "DEEP" })), json!([])),
        ] {
            for (on, mut line) in Line::open_all(&engine, &server).await.into_iter().filter(|(on, _)| *on != "sse") {
                let frames = line.exchange(frame.as_bytes()).await;
                let codes: Vec<_> = frames.iter().map(|frame| frame["error"]["code"].clone()).collect();
                assert_eq!(Json::from(codes), expected, "{what} on {on}");
            }
            let reply = post(&server, frame.as_bytes()).await;
            assert!(reply.status < 500, "{what}: {reply:?}");
        }
    }
    assert_eq!(post(&server, echo("x").as_bytes()).await.status, 200);
}

/// 2026-07-28, Multi Round-Trip Requests: Server Requirements 5.
#[tokio::test]
async fn a_state_is_not_taken_for_other_arguments_that_cannot_be_read_either() {
    let mut line = Line::pipe(&engine(SCRIPT));
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(500), "]".repeat(500));
    let call = |arguments: &str, state: &Json| {
        let params = json!({ "name": "ask", "arguments": { "deep": "DEEP" }, "requestState": state });
        modern(1, "tools/call", params).to_string().replace("\"DEEP\"", arguments).replace(",\"requestState\":null", "")
    };
    let first = line.exchange(call(&deep("1"), &Json::Null).as_bytes()).await;
    let state = &first[0]["result"]["requestState"];
    let again = line.exchange(call(&deep("1"), state).as_bytes()).await;
    assert_eq!(again[0]["result"]["resultType"], "input_required", "{again:?}");
    let other = line.exchange(call(&deep("2"), state).as_bytes()).await;
    assert_eq!(other[0]["error"]["code"], -32_602, "{other:?}");
}

/// A legacy client's answer that cannot be read is no answer of the form that was asked for.
#[tokio::test]
async fn a_legacy_answer_of_ten_thousand_levels_is_an_error_of_the_tool() {
    let mut line = Line::pipe(&engine(SCRIPT));
    line.greet(&json!({ "elicitation": {} })).await;
    line.send(request(1, "tools/call", json!({ "name": "ask" })).to_string().as_bytes()).await;
    let id = line.next().await["id"].clone();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    line.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{deep}}}}}"#).as_bytes())
        .await;
    assert_eq!(line.next().await["result"]["isError"], true);
}

/// 2025-11-25, Transports: messages are UTF-8.
#[tokio::test]
async fn invalid_utf_8_is_not_json() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    let mut frame = echo("x").into_bytes();
    let at = frame.windows(3).position(|bytes| bytes == b"\"x\"").expect("the text") + 1;
    for bytes in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"] {
        frame.splice(at..=at, bytes.iter().copied());
        for (on, mut line) in Line::open_all(&engine, &server).await.into_iter().filter(|(on, _)| *on != "ws") {
            let frames = line.exchange(&frame).await;
            assert_eq!((&frames[0]["error"]["code"], frames[0].get("id")), (&json!(-32_700), None), "{on}: {frames:?}");
        }
        let reply = post(&server, &frame).await;
        assert_eq!((reply.status, reply.code()), (400, Some(-32_700)), "{reply:?}");
        frame.splice(at..at + bytes.len(), *b"x");
    }
}

/// RFC 6455, 8.1 and 7.4.1; binary messages are not what this binding has.
#[tokio::test]
async fn a_web_socket_that_carries_no_text_is_closed_with_its_code_and_the_next_one_works() {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::{
        Message,
        protocol::frame::{
            Frame,
            coding::{Data, OpCode},
        },
    };

    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    let frame = |data, payload: &'static [u8]| Message::Frame(Frame::message(payload, OpCode::Data(data), true));
    for (message, code) in [
        (frame(Data::Text, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"), 1007),
        (frame(Data::Binary, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), 1003),
        (frame(Data::Continue, b"{}"), 1002),
        (frame(Data::Reserved(5), b"{}"), 1002),
    ] {
        let Line::Ws(mut socket) = Line::ws(&server).await else { panic!("a WebSocket") };
        socket.send(message.clone()).await.expect("sends");
        let received = tokio::time::timeout(PATIENCE, socket.next()).await.expect("in time");
        let Some(Ok(Message::Close(Some(close)))) = received else { panic!("{message:?}: {received:?}") };
        assert_eq!(u16::from(close.code), code, "{message:?}");
        assert_eq!(Line::ws(&server).await.exchange(echo("x").as_bytes()).await.len(), 1);
    }
}
