//! The server's half of a WebSocket (RFC 6455) with subprotocol `mcp`: text messages, one frame each.

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
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
        protocol::{
            CloseFrame, Role, WebSocketConfig,
            frame::{
                Frame,
                coding::{CloseCode, Data, OpCode},
            },
        },
    },
};

use super::{Body, Request, Response};
use rehearse_protocol::MAX_FRAME;

/// The subprotocol that carries MCP.
pub const SUBPROTOCOL: &str = "mcp";
const VERSION: &str = "13";

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// The receiving half.
#[derive(Debug)]
pub struct Receiver(SplitStream<Socket>);

/// The sending half.
#[derive(Debug)]
pub struct Sender(SplitSink<Socket, Message>);

/// A message of a client.
#[derive(Debug)]
pub enum Received {
    /// A text message.
    Frame(Bytes),
    /// A binary message, which MCP over WebSocket does not allow.
    Binary,
    /// The client closed the connection.
    Closed,
    /// The client broke the WebSocket protocol; with this code the connection is closed.
    Broken(CloseCode),
}

/// The reason why an opening handshake is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The request does not ask for an upgrade.
    #[error("this endpoint is a WebSocket: the request must ask for an upgrade")]
    NoUpgrade,
    /// The version of WebSocket is not supported.
    #[error("the WebSocket version must be 13")]
    Version,
    /// The subprotocol is not offered.
    #[error("the WebSocket subprotocol must be `mcp`")]
    Subprotocol,
    /// The key is missing or malformed.
    #[error("Sec-WebSocket-Key must be 16 bytes in base64")]
    Key,
}

impl HandshakeError {
    /// The HTTP status of the response.
    pub const fn status(self) -> StatusCode {
        match self {
            HandshakeError::Version => StatusCode::UPGRADE_REQUIRED,
            HandshakeError::NoUpgrade | HandshakeError::Subprotocol | HandshakeError::Key => StatusCode::BAD_REQUEST,
        }
    }

    /// The extra headers of the response (RFC 6455, 4.4; RFC 9110, 15.5.22).
    pub fn headers(self) -> impl Iterator<Item = (header::HeaderName, HeaderValue)> {
        let headers =
            [(header::SEC_WEBSOCKET_VERSION, VERSION), (header::UPGRADE, "websocket"), (header::CONNECTION, "upgrade")];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        headers.into_iter().filter(move |_| self == HandshakeError::Version)
    }
}

/// Checks the opening handshake, and returns the `Sec-WebSocket-Accept` of the response (RFC 6455, 4.2.1).
///
/// # Errors
/// The reason why it is refused.
pub fn accept_key(headers: &HeaderMap) -> Result<HeaderValue, HandshakeError> {
    let has = |name: header::HeaderName, wanted: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case(wanted))
    };
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err(HandshakeError::NoUpgrade);
    }
    if !has(header::SEC_WEBSOCKET_VERSION, VERSION) {
        return Err(HandshakeError::Version);
    }
    if !has(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return Err(HandshakeError::Subprotocol);
    }
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return Err(HandshakeError::Key) };
    match STANDARD.decode(key) {
        Ok(nonce) if nonce.len() == 16 => {
            HeaderValue::try_from(handshake::derive_accept_key(key.as_bytes())).map_err(|_| HandshakeError::Key)
        }
        _ => Err(HandshakeError::Key),
    }
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

/// Takes over the connection when the switch was sent.
///
/// # Errors
/// The client has disconnected.
pub async fn upgrade(request: Request) -> Result<(Sender, Receiver), hyper::Error> {
    let upgraded = hyper::upgrade::on(request).await?;
    let config = WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (sender, receiver) = socket.split();
    Ok((Sender(sender), Receiver(receiver)))
}

impl Receiver {
    /// The next message; pings are answered. Cancel-safe.
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
    /// Sends one frame. Bytes that are not UTF-8 go out as a binary message.
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

    /// Sends a fragment of a text message, without checking its bytes.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn send_fragment(&mut self, bytes: Bytes, is_first: bool, is_last: bool) -> Result<(), Error> {
        let data = if is_first { Data::Text } else { Data::Continue };
        self.0.send(Message::Frame(Frame::message(bytes, OpCode::Data(data), is_last))).await
    }

    /// Sends the buffered bytes.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn flush(&mut self) -> Result<(), Error> {
        self.0.flush().await
    }

    /// Sends a close frame; whether it arrives does not matter any more.
    pub async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let _ = self.0.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
        let _ = self.0.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDSHAKE: [(&str, &str); 5] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "mcp"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    fn accept(name: &str, values: &[&'static str]) -> Result<HeaderValue, HandshakeError> {
        let kept = HANDSHAKE.iter().filter(|(other, _)| *other != name);
        let changed = values.iter().map(|value| (name, *value));
        let mut headers = HeaderMap::new();
        for (name, value) in kept.copied().chain(changed) {
            headers.append(header::HeaderName::try_from(name).expect("a name"), HeaderValue::from_static(value));
        }
        accept_key(&headers)
    }

    #[test]
    fn the_handshake_of_rfc_6455_is_accepted() {
        assert_eq!(accept("", &[]).as_ref().map(HeaderValue::as_bytes), Ok(&b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="[..]));
    }

    #[test]
    fn the_key_must_be_sixteen_bytes_in_base64() {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        for keys in [&[][..], &[""], &["x"], &["dGhlIHNhbXBsZQ=="], &["dGhlIHNhbXBsZSBub25jZQ"], &[key, key]] {
            assert_eq!(accept("sec-websocket-key", keys), Err(HandshakeError::Key), "{keys:?}");
        }
    }

    #[test]
    fn another_version_gets_the_supported_one() {
        let refusal = accept("sec-websocket-version", &["8"]).expect_err("another version");
        assert_eq!(refusal.status(), StatusCode::UPGRADE_REQUIRED);
        assert!(refusal.headers().any(|(name, value)| name == header::SEC_WEBSOCKET_VERSION && value == "13"));
        for (name, values) in [("upgrade", &["h2c"]), ("sec-websocket-protocol", &["chat"])] {
            let refusal = accept(name, values).expect_err(name);
            assert_eq!((refusal.status(), refusal.headers().count()), (StatusCode::BAD_REQUEST, 0));
        }
    }
}
