//! The server's half of a WebSocket (RFC 6455) with subprotocol `mcp`: text messages, one frame each.

use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, handshake,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{Body, Request, Response};
use crate::wire::MAX_FRAME;

/// The subprotocol that carries MCP.
pub const SUBPROTOCOL: &str = "mcp";

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// The receiving half.
#[derive(Debug)]
pub struct Receiver(SplitStream<Socket>);

/// The sending half.
#[derive(Debug)]
pub struct Sender(SplitSink<Socket, Message>);

/// What a client sent.
#[derive(Debug)]
pub enum Received {
    Frame(Bytes),
    /// A binary message, which the binding does not have.
    Binary,
    /// The client closed the connection.
    Closed,
    /// The client broke the WebSocket protocol; with this code the connection is closed.
    Broken(CloseCode),
}

/// Checks the opening handshake.
///
/// # Errors
/// What is wrong with it; to be answered with 400.
pub fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, &'static str> {
    let has = |name: header::HeaderName, wanted: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case(wanted))
    };
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err("this endpoint speaks WebSocket: the request must ask for an upgrade");
    }
    if !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err("the WebSocket version must be 13");
    }
    if !has(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return Err("the WebSocket subprotocol must be `mcp`");
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or("Sec-WebSocket-Key is missing")?;
    HeaderValue::try_from(handshake::derive_accept_key(key.as_bytes())).map_err(|_| "Sec-WebSocket-Key is malformed")
}

/// The response that switches protocols.
pub fn switch(accept: HeaderValue) -> Response {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// Takes over the connection once the switch was sent.
///
/// # Errors
/// The client went away before.
pub async fn upgrade(request: Request) -> Result<(Sender, Receiver), hyper::Error> {
    let upgraded = hyper::upgrade::on(request).await?;
    let config = WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (sender, receiver) = socket.split();
    Ok((Sender(sender), Receiver(receiver)))
}

impl Receiver {
    /// The next message; pings are answered on the way. Cancel-safe.
    pub async fn next(&mut self) -> Received {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Received::Frame(text.into()),
                Some(Ok(Message::Binary(_))) => return Received::Binary,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Received::Closed,
                Some(Err(Error::Utf8(_))) => return Received::Broken(CloseCode::Invalid),
                Some(Err(Error::Capacity(_))) => return Received::Broken(CloseCode::Size),
                Some(Err(Error::Protocol(_))) => return Received::Broken(CloseCode::Protocol),
                Some(Err(_)) => return Received::Closed,
            }
        }
    }
}

impl Sender {
    /// Sends one frame. Bytes that are no UTF-8 go out as a binary message.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn send(&mut self, frame: Bytes) -> Result<(), Error> {
        let message = match tokio_tungstenite::tungstenite::Utf8Bytes::try_from(frame.clone()) {
            Ok(text) => Message::Text(text),
            Err(_) => Message::Binary(frame),
        };
        self.0.send(message).await
    }

    /// Sends a close frame; whether it arrives does not matter any more.
    pub async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let _ = self.0.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
        let _ = self.0.close().await;
    }
}
