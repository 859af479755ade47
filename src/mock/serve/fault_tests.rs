//! What a client sees of every fault, byte for byte, on every transport.

use std::{sync::Arc, time::Duration};

use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use super::{Ended, Listen, MockServer, Shared, serve_pipe};
use crate::{
    config::Source,
    mock::{engine::Engine, faults::ALL, journal::Journal, script::Script},
    transport::Transport,
};

const PATIENCE: Duration = Duration::from_secs(20);
const MODERN: &str = "2026-07-28";

/// A server whose tool `late` is answered by a notification and then a response, and `now` by a response at once.
fn engine(faults: &str) -> Arc<Engine> {
    let text = format!(
        "server: {{ name: t }}
tools:
  - {{ name: now, reply: {{ result: {{ r: 1 }} }} }}
  - {{ name: late, steps: [{{ notify: {{ method: notifications/n }} }}, {{ wait: 1ms }}, {{ reply: {{ result: {{ r: 1 }} }} }}] }}
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

/// All bytes that come, and whether the end is one.
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
    let ended = if ended == Ended::Closed { String::new() } else { format!(" {ended:?}") };
    format!("{}{ended}", short(&bytes).replace('\n', "/"))
}

async fn start(engine: Arc<Engine>) -> MockServer {
    MockServer::start(engine, Listen::default()).await.expect("binds")
}

fn died(shared: &Shared) -> String {
    shared.died.get().map(|code| format!(" Died({code})")).unwrap_or_default()
}

/// Stops the server in order as soon as it has so many messages: what is under way is answered.
async fn stop_after(server: MockServer, messages: u64) {
    let received = async {
        while server.engine().journal().len() < messages {
            tokio::task::yield_now().await;
        }
    };
    in_time(received).await;
    // What the last message starts is entered before it is awaited.
    tokio::task::yield_now().await;
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
    let shared = server.shared.clone();
    let mut stream = TcpStream::connect(server.address()).await.expect("connects");
    stream.write_all(modern_post(tool).as_bytes()).await.expect("writes");
    let ((bytes, end), ()) = tokio::join!(read_all(&mut stream), stop_after(server, 1));
    response(&bytes, end) + &died(&shared)
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
    let mut stream = TcpStream::connect(server.address()).await.expect("connects");
    let opened = exchange(&mut stream, &post("/mcp", &[], &initialize(version))).await;
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    (stream, id)
}

/// A legacy session, whose streams can be resumed.
async fn session(engine: Arc<Engine>, tool: &str) -> String {
    let server = start(engine).await;
    let shared = server.shared.clone();
    let (mut stream, id) = open_session(&server, "2025-11-25").await;
    let call = post("/mcp", &[("mcp-session-id", &id)], &call("2025-11-25", 1, tool));
    stream.write_all(call.as_bytes()).await.expect("writes");
    let ((bytes, end), ()) = tokio::join!(read_all(&mut stream), stop_after(server, 2));
    response(&bytes, end) + &died(&shared)
}

/// The POST's response, and what comes on the stream.
async fn sse(engine: Arc<Engine>, tool: &str) -> String {
    let server = start(engine).await;
    let shared = server.shared.clone();
    let mut stream = TcpStream::connect(server.address()).await.expect("connects");
    let get = "GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(get.as_bytes()).await.expect("writes");
    let mut bytes = read_until(&mut stream, "\n\n").await;
    let opened = String::from_utf8_lossy(&bytes).into_owned();
    let path = format!("/messages?sessionId={}", &opened.split("sessionId=").nth(1).expect("an id")[..32]);
    let mut posts = TcpStream::connect(server.address()).await.expect("connects");
    exchange(&mut posts, &post(&path, &[], &initialize("2024-11-05"))).await;
    bytes.extend(read_until(&mut stream, "\n\n").await);
    posts.write_all(post(&path, &[], &call("2024-11-05", 1, tool)).as_bytes()).await.expect("writes");
    let ((rest, end), (posted, _), ()) =
        tokio::join!(read_all(&mut stream), read_all(&mut posts), stop_after(server, 2));
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
    let died = died(&shared);
    format!("{posted}{}{end}{died}", answer.replace('\n', "/").replace("event: message/", ""))
}

/// The frames: `[…]` stands before one that begins a message, `+` before one that goes on with it, `,` after one that
/// does not end it.
async fn ws(engine: Arc<Engine>, tool: &str) -> String {
    let server = start(engine).await;
    let shared = server.shared.clone();
    let mut stream = TcpStream::connect(server.address()).await.expect("connects");
    let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.expect("writes");
    read_until(&mut stream, "\r\n\r\n").await;
    let call = call(MODERN, 1, tool);
    let length = u16::try_from(call.len()).expect("a short frame").to_be_bytes();
    let frame = [&[0x81, 0x80 | 126, length[0], length[1], 0, 0, 0, 0], call.as_bytes()].concat();
    stream.write_all(&frame).await.expect("writes");
    let ((bytes, end), ()) = tokio::join!(read_all(&mut stream), stop_after(server, 1));
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
    format!("{}{end}{}", frames.join(" "), died(&shared))
}

/// Each fault with what becomes of the answer of `late`, and on HTTP also of `now`.
const SEEN: &str = include_str!("fault_tests.txt");

#[tokio::test]
async fn a_client_sees_of_each_fault_what_the_table_says() {
    let mut seen = String::new();
    for line in SEEN.lines() {
        let (transport, _) = line.trim_start().split_once(' ').unwrap_or_default();
        let fault = || seen.rsplit("\n\n").next().and_then(|block| block.lines().next()).expect("a fault").to_owned();
        let engine = || on_call(&fault());
        let actual = match transport {
            _ if !line.starts_with("  ") => line.to_owned(),
            "stdio" => stdio(engine(), &[call(MODERN, 1, "late")]).await,
            "json" => http(engine(), "now").await,
            "events" => http(engine(), "late").await,
            "session" => session(engine(), "late").await,
            "sse" => sse(engine(), "late").await,
            "ws" => ws(engine(), "late").await,
            _ => panic!("{line}"),
        };
        let actual = if line.starts_with("  ") { format!("  {transport:7} |{actual}") } else { actual };
        seen.push_str(&format!("{}\n", actual.trim_end()));
    }
    let different = seen.lines().zip(SEEN.lines()).filter(|(seen, table)| seen != table);
    assert_eq!(different.collect::<Vec<_>>(), []);
    let missing: Vec<_> = ALL.iter().map(|it| it.name).filter(|name| !SEEN.contains(name)).collect();
    assert_eq!(missing, [""; 0]);
}
