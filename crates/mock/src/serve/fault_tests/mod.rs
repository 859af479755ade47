//! The bytes that a client receives for every fault, on every transport.

mod cases;
mod table;

use std::{sync::Arc, time::Duration};

use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use super::{ListenOptions, MockServer, PipeEnd, serve_pipe, server_state::ServerState};
use crate::{engine::Engine, journal::Journal, script::Script};
use rehearse_document::Source;
use rehearse_protocol::Transport;

const PATIENCE: Duration = Duration::from_secs(20);
const MODERN: &str = "2026-07-28";

/// The tool `late` is answered by a notification and then a response, and `now` by a response at once. It is short, so
/// that what is cut and dripped of it can be counted.
const TOOLS: &str = r#"
  - { name: now, reply: { raw: '{"jsonrpc":"2.0","id":{{ id | tojson }},"result":{"r":1}}' } }
  - name: late
    steps:
      - notify: { method: notifications/n }
      - wait: 1ms
      - reply: { raw: '{"jsonrpc":"2.0","id":{{ id | tojson }},"result":{"r":1}}' }
"#;

/// A server with these faults.
fn engine(faults: &str) -> Arc<Engine> {
    let text = format!(
        "server: {{ name: t }}
tools:
{TOOLS}
faults:
{faults}
"
    );
    let script = Script::parse(&Source::new("s", text)).unwrap_or_else(|error| panic!("{error}"));
    Engine::new(script, 1, Journal::default())
}

fn on_call(faults: &str) -> Arc<Engine> {
    engine(&format!("  - on: {{ method: tools/call }}\n    do: {faults}"))
}

fn request(version: &str, id: i64, method: &str, params: Json) -> String {
    let mut params = params;
    if version == MODERN {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn call(version: &str, id: i64, tool: &str) -> String {
    request(version, id, "tools/call", json!({ "name": tool, "arguments": {} }))
}

fn initialize(version: &str) -> String {
    let client = json!({ "name": "c", "version": "1" });
    request(version, 0, "initialize", json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }))
}

/// Bytes in a form that is easy to compare: `N` is the notification and `R1` the response to request 1.
fn short(bytes: &[u8]) -> String {
    let text: String =
        bytes.utf8_chunks().map(|chunk| chunk.valid().to_owned() + &"?".repeat(chunk.invalid().len())).collect();
    let text = text.replace(r#"{"jsonrpc":"2.0","method":"notifications/n","params":{}}"#, "N");
    (1..=3).fold(text, |text, id| {
        text.replace(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"r":1}}}}"#), &format!("R{id}"))
    })
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

/// All bytes of the connection, and whether it was closed rather than reset.
async fn read_all(stream: &mut (impl AsyncReadExt + Unpin)) -> (Vec<u8>, &'static str) {
    let mut bytes = Vec::new();
    let ended = in_time(stream.read_to_end(&mut bytes)).await;
    (bytes, if ended.is_ok() { "end" } else { "reset" })
}

async fn stdio(engine: Arc<Engine>, frames: &[String]) -> String {
    let (near, far) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(far);
    let serving =
        tokio::spawn(serve_pipe(engine, Transport::Stdio, reader, writer, CancellationToken::new(), PATIENCE));
    let (mut reader, mut writer) = tokio::io::split(near);
    writer.write_all((frames.join("\n") + "\n").as_bytes()).await.expect("writes");
    writer.shutdown().await.expect("closes");
    let (bytes, _) = read_all(&mut reader).await;
    let ended = in_time(serving).await.expect("no panic").expect("no error");
    let ended = if ended == PipeEnd::Closed { String::new() } else { format!(" {ended:?}") };
    format!("{}{ended}", short(&bytes).replace('\n', "/"))
}

async fn connect(server: &MockServer) -> TcpStream {
    let stream = TcpStream::connect(server.address()).await.expect("connects");
    stream.set_nodelay(true).expect("sets the option");
    stream
}

async fn start(engine: Arc<Engine>) -> MockServer {
    MockServer::start(engine, ListenOptions::default()).await.expect("binds")
}

fn exit_code(state: &ServerState) -> String {
    state.lifetime.exit_code().map(|code| format!(" Exited({code})")).unwrap_or_default()
}

async fn journalled(server: &MockServer, messages: u64) {
    let received = async {
        while server.engine().journal().len() < messages {
            tokio::task::yield_now().await;
        }
    };
    in_time(received).await;
}

/// Stops the server after this many messages; answers in progress finish.
async fn stop_after(server: MockServer, messages: u64) {
    journalled(&server, messages).await;
    in_time(server.stop(PATIENCE)).await;
}

fn post(path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn modern_post(tool: &str) -> String {
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    post("/mcp", &headers, &call(MODERN, 1, tool))
}

/// The head in short, and the body without chunks; `~` stands for an end that breaks the framing.
fn response(bytes: &[u8], end: &str) -> String {
    let broken = if end == "reset" { "~reset" } else { "~" };
    let Some(split) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
        assert_eq!(bytes, b"");
        return broken.into();
    };
    let (head, body) = (String::from_utf8_lossy(&bytes[..split]).to_lowercase(), &bytes[split + 4..]);
    let header =
        |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    let status = head.split(' ').nth(1).expect("a status").split("\r\n").next().expect("a status").to_owned();
    let kind = header("content-type").map(|it| format!(" {}", it.rsplit('/').next().unwrap_or_default()));
    let (body, is_whole) = match header("content-length") {
        Some(length) => (body.to_vec(), length.parse::<usize>().expect("a length") == body.len()),
        None if header("transfer-encoding").is_some() => dechunked(body),
        None => (body.to_vec(), true),
    };
    let extra = header("retry-after").map(|it| format!(" retry-after {it}")).unwrap_or_default();
    // A whole answer may still be followed by a reset.
    let end = if end == "reset" || !is_whole { broken } else { "" };
    format!("{status}{}{extra}: {}{end}", kind.unwrap_or_default(), short(&body).replace('\n', "/"))
}

fn dechunked(mut chunks: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = chunks.windows(2).position(|it| it == b"\r\n") {
        let size = std::str::from_utf8(&chunks[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&chunks[line + 2..line + 2 + size]);
        chunks = &chunks[line + 2 + size + 2..];
    }
    (body, false)
}

async fn http(engine: Arc<Engine>, tool: &str) -> String {
    let server = start(engine).await;
    let state = server.state.clone();
    let mut stream = connect(&server).await;
    stream.write_all(modern_post(tool).as_bytes()).await.expect("writes");
    let ((bytes, end), ()) = tokio::join!(read_all(&mut stream), stop_after(server, 1));
    response(&bytes, end) + &exit_code(&state)
}

/// Reads until something has come, and at least so much.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains(wanted) {
        assert!(in_time(stream.read_buf(&mut bytes)).await.expect("reads") > 0, "{bytes:?}");
    }
    bytes
}

/// Sends a request and reads its whole response.
async fn exchange(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("writes");
    let mut text = String::from_utf8(read_until(stream, "\r\n\r\n").await).expect("text");
    if text.contains("transfer-encoding: chunked") {
        while !text.ends_with("0\r\n\r\n") {
            text.push_str(std::str::from_utf8(&read_until(stream, "\n").await).expect("text"));
        }
        return text;
    }
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |it| it.parse().expect("a length"));
    let missing = text.split_once("\r\n\r\n").map_or(0, |(_, body)| length - body.len());
    let mut rest = vec![0; missing];
    in_time(stream.read_exact(&mut rest)).await.expect("reads");
    text.push_str(std::str::from_utf8(&rest).expect("text"));
    text
}

async fn open_session(server: &MockServer, version: &str) -> (TcpStream, String) {
    let mut stream = connect(server).await;
    let opened = exchange(&mut stream, &post("/mcp", &[], &initialize(version))).await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    (stream, id)
}

/// A legacy session, whose streams can be resumed: what the first frame is answered with. Each further frame has a
/// connection of its own.
async fn session(engine: Arc<Engine>, frames: &[String]) -> String {
    let server = start(engine).await;
    let state = server.state.clone();
    let (mut stream, id) = open_session(&server, "2025-11-25").await;
    let post = |frame| post("/mcp", &[("mcp-session-id", &id)], frame);
    stream.write_all(post(&frames[0]).as_bytes()).await.expect("writes");
    for (received, frame) in (2..).zip(&frames[1..]) {
        journalled(&server, received).await;
        let mut other = connect(&server).await;
        exchange(&mut other, &post(frame)).await;
    }
    let ((bytes, end), ()) = tokio::join!(read_all(&mut stream), stop_after(server, frames.len() as u64 + 1));
    response(&bytes, end) + &exit_code(&state)
}

/// The POST's response, and what comes on the stream.
async fn sse(engine: Arc<Engine>, frames: &[String]) -> String {
    let server = start(engine).await;
    let state = server.state.clone();
    let mut stream = connect(&server).await;
    let get = "GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(get.as_bytes()).await.expect("writes");
    let mut bytes = read_until(&mut stream, "\n\n").await;
    let opened = String::from_utf8_lossy(&bytes).into_owned();
    let path = format!("/messages?sessionId={}", &opened.split("sessionId=").nth(1).expect("an id")[..32]);
    let mut posts = connect(&server).await;
    exchange(&mut posts, &post(&path, &[], &initialize("2024-11-05"))).await;
    bytes.extend(read_until(&mut stream, "\n\n").await);
    let frames: Vec<_> = frames.iter().map(|frame| post(&path, &[], frame)).collect();
    posts.write_all(frames.concat().as_bytes()).await.expect("writes");
    // The GET and the handshake are in the journal too.
    let stopped = stop_after(server, frames.len() as u64 + 2);
    let ((rest, end), (posted, _), ()) = tokio::join!(read_all(&mut stream), read_all(&mut posts), stopped);
    bytes.extend(rest);
    let head = bytes.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
    let (body, is_whole) = dechunked(&bytes[head..]);
    let body = short(&body);
    let end = if end == "reset" {
        "~reset"
    } else if is_whole {
        ""
    } else {
        "~"
    };
    let posted = String::from_utf8_lossy(&posted).split(' ').nth(1).unwrap_or("none").to_owned();
    let posted = if posted == "202" { String::new() } else { format!("POST {posted}: ") };
    let answer = body.splitn(3, "\n\n").nth(2).unwrap_or_default();
    let exit = exit_code(&state);
    format!("{posted}{}{end}{exit}", answer.replace('\n', "/").replace("event: message/", ""))
}

/// The frames: `[…]` stands before one that begins a message, `+` before one that goes on with it, `,` after one that
/// does not end it.
async fn ws(engine: Arc<Engine>, frames: &[String]) -> String {
    let server = start(engine).await;
    let state = server.state.clone();
    let mut stream = connect(&server).await;
    let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.expect("writes");
    read_until(&mut stream, "\r\n\r\n").await;
    for frame in frames {
        let length = u16::try_from(frame.len()).expect("a short frame").to_be_bytes();
        let frame = [&[0x81, 0x80 | 126, length[0], length[1], 0, 0, 0, 0], frame.as_bytes()].concat();
        stream.write_all(&frame).await.expect("writes");
    }
    let ((bytes, end), ()) = tokio::join!(read_all(&mut stream), stop_after(server, frames.len() as u64));
    let mut frames = Vec::new();
    let mut rest = &bytes[..];
    while let [first, second, tail @ ..] = rest {
        let (length, tail) = match second {
            126 => (usize::from(u16::from_be_bytes([tail[0], tail[1]])), &tail[2..]),
            length => (usize::from(*length), tail),
        };
        let (payload, tail) = tail.split_at(length);
        let last = if first & 0x80 == 0 { "," } else { "" };
        frames.push(match first & 0xf {
            1 => format!("[text]{}{last}", short(payload)),
            0 => format!("+{}{last}", short(payload)),
            2 => format!("[binary]{}{last}", short(payload)),
            8 => format!("[close {}]", u16::from_be_bytes([payload[0], payload[1]])),
            other => format!("[{other}]"),
        });
        rest = tail;
    }
    let end = if end == "reset" { " ~reset" } else { "" };
    format!("{}{end}{}", frames.join(" "), exit_code(&state))
}
