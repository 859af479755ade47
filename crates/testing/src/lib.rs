//! For tests: scripted servers, independent of the client crate, and tables.

pub mod table;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{Request, Response, body::Frame, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use rehearse_net::{LineReader, LineWriter, pipe};

pub const INITIALIZED: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}"#;
pub const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
pub const HELLO: &str = r#"{"content":[{"type":"text","text":"hello"}]}"#;

pub fn result(message: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"])
}

pub fn error(message: &Value, code: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"scripted"}}}}"#, message["id"])
}

/// The answers of a server of both eras to a handshake; none to other messages.
pub fn greet(message: &Value) -> Vec<String> {
    match message["method"].as_str() {
        Some("initialize") => vec![result(message, INITIALIZED)],
        Some("server/discover") => vec![result(message, DISCOVERED)],
        _ => Vec::new(),
    }
}

/// A server task that ends with the test.
pub struct Server {
    pub address: pipe::Address,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers every line with the lines of `answer`; hangs up after an answer of `"hang up"`.
pub fn in_memory(mut answer: impl FnMut(&Value) -> Vec<String> + Send + 'static) -> Server {
    let (address, mut listener) = pipe::listen();
    let task = tokio::spawn(async move {
        while let Some(stream) = listener.accept().await {
            let (reader, writer) = tokio::io::split(stream);
            let (mut reader, mut writer) = (LineReader::new(reader), LineWriter::new(writer));
            'connection: while let Ok(Some(Ok(line))) = reader.next().await {
                let message = serde_json::from_slice(&line).unwrap_or_default();
                for answer in answer(&message) {
                    if answer == "hang up" || writer.write(answer.as_bytes()).await.is_err() {
                        break 'connection;
                    }
                }
            }
        }
    });
    Server { address, task }
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub headers: hyper::HeaderMap,
    pub body: Bytes,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

pub type Body = BoxBody<Bytes, Infallible>;

/// An HTTP server on a free port.
pub struct HttpServer {
    pub url: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HttpServer {
    pub async fn start<F>(answer: impl Fn(Seen) -> F + Clone + Send + Sync + 'static) -> HttpServer
    where
        F: Future<Output = Response<Body>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (answer.clone(), log.clone());
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let (answer, log) = (answer.clone(), log.clone());
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                        let seen = Seen { method: parts.method.to_string(), headers: parts.headers, body };
                        log.lock().expect("no panic").push(seen.clone());
                        Ok::<_, Infallible>(answer(seen).await)
                    }
                });
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        HttpServer { url, seen, task }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}

pub fn reply(status: u16, media_type: &str, body: impl Into<Bytes>) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", media_type);
    response.body(Full::new(body.into()).boxed()).expect("a response")
}

pub fn json(body: String) -> Response<Body> {
    reply(200, "application/json", body)
}

/// An event stream that lasts until the sender is dropped. `Sender::closed` resolves when the client has disconnected.
pub fn events() -> (mpsc::Sender<String>, Response<Body>) {
    let (sender, receiver) = mpsc::channel::<String>(16);
    let chunks = stream::unfold(receiver, |mut receiver| async move {
        let chunk = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(chunk))), receiver))
    });
    let body = BodyExt::boxed(StreamBody::new(chunks));
    (sender, Response::builder().header("content-type", "text/event-stream").body(body).expect("a response"))
}

/// The answers of a legacy server with sessions, or of a modern one, to all messages but calls.
pub fn greet_http(seen: &Seen) -> Option<Response<Body>> {
    let message = seen.message();
    Some(match (&*seen.method, message["method"].as_str()) {
        ("POST", Some("initialize")) => {
            let mut response = json(result(&message, INITIALIZED));
            response.headers_mut().insert("mcp-session-id", "s-1".parse().expect("a header"));
            response
        }
        ("POST", Some("server/discover")) => json(result(&message, DISCOVERED)),
        ("POST", Some(method)) if method.starts_with("notifications/") => reply(202, "text/plain", ""),
        ("POST", _) => return None,
        ("DELETE", _) => reply(204, "text/plain", ""),
        _ => reply(405, "text/plain", ""),
    })
}

/// Whether a process runs; a zombie does not.
pub fn is_running(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
