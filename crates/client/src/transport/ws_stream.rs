//! Frames over an open WebSocket.

use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use super::WireError;
use crate::recorder::ClientRecorder;
use rehearse_protocol::{Closed, ClosedHow};

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;
pub(crate) type Sink = SplitSink<Socket, Message>;

/// What the server sends.
pub(crate) struct Stream {
    pub(super) stream: SplitStream<Socket>,
    pub(super) recorder: ClientRecorder,
    /// The number of the upgrade in the trace.
    pub(super) exchange: u32,
}

/// The next frame, or how the connection ended. A binary message is a frame as well, and noted as a body of the upgrade.
/// Cancel-safe.
pub(crate) async fn next_frame(stream: &mut Stream) -> Result<Bytes, Closed> {
    loop {
        return match stream.stream.next().await {
            Some(Ok(Message::Text(text))) => Ok(text.into()),
            Some(Ok(Message::Binary(bytes))) => {
                stream.recorder.note_body(Some(stream.exchange), bytes.clone());
                Ok(bytes)
            }
            Some(Ok(Message::Close(Some(frame)))) => {
                let (code, reason) = (u16::from(frame.code), frame.reason);
                Err(Closed::by_server(format!("the server closed the WebSocket: {code} {reason}")))
            }
            Some(Ok(Message::Close(None))) => Err(Closed::by_server("the server closed the WebSocket without a code")),
            Some(Ok(_)) => continue,
            Some(Err(error)) => Err(broken(&error)),
            None => Err(Closed::by_server("the server ended the WebSocket without closing it").broken()),
        };
    }
}

fn broken(error: &Error) -> Closed {
    let text = format!("the WebSocket broke: {error}");
    match error {
        Error::Capacity(_) => Closed::by_limit(text),
        Error::Utf8(_) => Closed::by_server(text).with(ClosedHow::NotUtf8),
        _ => Closed::by_server(text).broken(),
    }
}

/// Sends one frame, as a binary message if it is not UTF-8.
///
/// # Errors
/// Those of the socket.
pub(crate) async fn send(sink: &mut Sink, bytes: Bytes) -> Result<(), WireError> {
    let message = match std::str::from_utf8(&bytes) {
        Ok(text) => Message::text(text),
        Err(_) => Message::Binary(bytes),
    };
    sink.send(message).await.map_err(|error| WireError::Ws(Box::new(error)))
}

/// Sends a close frame; the reader of the stream receives that of the server.
pub(crate) async fn close(mut sink: Sink) {
    let _ = sink.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))).await;
}
