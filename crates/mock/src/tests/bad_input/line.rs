//! A client that sends any bytes on a transport with one connection for both directions.

use std::{sync::Arc, time::Duration};

use crate::engine::Engine;
use crate::serve::MockServer;
use crate::serve::serve_pipe;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rehearse_protocol::Transport;
use rehearse_protocol::sse;
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    net::TcpStream,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{Message, client::IntoClientRequest},
};
use tokio_util::sync::CancellationToken;

use super::{INITIALIZED, PATIENCE, http, initialize, modern};

pub(super) enum Line {
    Pipe(Lines<BufReader<ReadHalf<DuplexStream>>>, WriteHalf<DuplexStream>),
    Ws(Box<WebSocketStream<MaybeTlsStream<TcpStream>>>),
    Sse(Box<Sse>),
}

/// HTTP+SSE: a stream down, POSTs up.
pub(super) struct Sse {
    server: String,
    path: String,
    stream: reqwest::Response,
    decoder: sse::Decoder,
    ready: Vec<sse::Event>,
}

impl Sse {
    async fn next(&mut self) -> Option<sse::Event> {
        while self.ready.is_empty() {
            let chunk = self.stream.chunk().await.expect("reads")?;
            self.decoder.push(&chunk, &mut self.ready).expect("small");
        }
        Some(self.ready.remove(0))
    }
}

impl Line {
    /// Opens one of each, but for those that the engine's versions do not have.
    pub(super) async fn open_all(engine: &Arc<Engine>, server: &MockServer) -> Vec<(&'static str, Line)> {
        let mut all = vec![("pipe", Line::pipe(engine)), ("ws", Line::ws(server).await)];
        if engine.offers(rehearse_protocol::Era::Legacy) {
            all.push(("sse", Line::sse(server).await));
        }
        all
    }

    pub(super) fn pipe(engine: &Arc<Engine>) -> Line {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(far);
        let stop = CancellationToken::new();
        tokio::spawn(serve_pipe(engine.clone(), Transport::Stdio, reader, writer, stop, Duration::ZERO));
        let (reader, writer) = tokio::io::split(near);
        Line::Pipe(BufReader::new(reader).lines(), writer)
    }

    pub(super) async fn ws(server: &MockServer) -> Line {
        let mut request = server.url(Transport::Ws).expect("a URL").into_client_request().expect("a request");
        request.headers_mut().insert("sec-websocket-protocol", ::http::HeaderValue::from_static("mcp"));
        let (socket, _) = tokio_tungstenite::connect_async(request).await.expect("connects");
        Line::Ws(Box::new(socket))
    }

    async fn sse(server: &MockServer) -> Line {
        let url = server.url(Transport::Sse).expect("a URL");
        let client = http::client();
        let stream = client.get(url).header("accept", "text/event-stream").send().await.expect("a stream");
        let (decoder, ready) = (sse::Decoder::default(), Vec::new());
        let mut sse = Sse { server: server.address().to_string(), path: String::new(), stream, decoder, ready };
        let endpoint = sse.next().await.expect("the endpoint").data.expect("data");
        sse.path = String::from_utf8_lossy(&endpoint).into_owned();
        Line::Sse(Box::new(sse))
    }

    pub(super) async fn send(&mut self, frame: &[u8]) {
        match self {
            Line::Pipe(_, writer) => {
                writer.write_all(&[frame, b"\n"].concat()).await.expect("writes");
            }
            Line::Ws(socket) => {
                let text = String::from_utf8(frame.to_vec()).expect("UTF-8");
                socket.send(Message::text(text)).await.expect("sends");
            }
            Line::Sse(sse) => {
                let headers = [("content-type", "application/json")];
                let reply = http::Http::new(&sse.server).post(&sse.path, &headers, frame).await;
                assert_eq!(reply.status, 202, "{reply:?}");
            }
        }
    }

    pub(super) async fn next(&mut self) -> Json {
        let next = async {
            match self {
                Line::Pipe(reader, _) => reader.next_line().await.expect("reads").map(Bytes::from),
                Line::Ws(socket) => Some(socket.next().await?.expect("well formed").into_data()),
                Line::Sse(sse) => sse.next().await?.data,
            }
        };
        let frame = tokio::time::timeout(PATIENCE, next).await.expect("in time").expect("the connection is open");
        serde_json::from_slice(&frame).unwrap_or_else(|error| panic!("{error}: {frame:?}"))
    }

    /// The handshake of a legacy client.
    pub(super) async fn greet(&mut self, capabilities: &Json) {
        self.exchange(initialize("2025-11-25", capabilities).to_string().as_bytes()).await;
        self.exchange(INITIALIZED.as_bytes()).await;
    }

    /// Everything that a frame brings at once. What the server answers to the next request shows that it is alive.
    pub(super) async fn exchange(&mut self, frame: &[u8]) -> Vec<Json> {
        self.send(frame).await;
        let probe = match self {
            Line::Sse(_) => json!({ "jsonrpc": "2.0", "id": "probe", "method": "ping" }),
            _ => modern("probe", "server/discover", json!({})),
        };
        self.send(probe.to_string().as_bytes()).await;
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            if frame["id"] == "probe" {
                assert!(frame.get("result").is_some(), "the server answers normally: {frame}");
                return frames;
            }
            frames.push(frame);
        }
    }
}
