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
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use super::{LinkError, web};
use crate::recorder::TraceRecorder;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;
pub(crate) type Sink = SplitSink<Socket, Message>;

/// What the server sends.
pub(crate) struct Stream {
    pub(super) stream: SplitStream<Socket>,
    pub(super) recorder: TraceRecorder,
    /// The number of the upgrade in the trace.
    pub(super) exchange: u32,
}

/// How the reason begins after a close frame of the server.
pub(crate) const CLOSED: &str = "the server closed the WebSocket";

/// The next frame, or why there are no more. A binary message is a frame as well, and noted as a body of the upgrade.
/// Cancel-safe.
pub(crate) async fn next_frame(stream: &mut Stream) -> Result<Bytes, String> {
    loop {
        return match stream.stream.next().await {
            Some(Ok(Message::Text(text))) => Ok(text.into()),
            Some(Ok(Message::Binary(bytes))) => {
                web::note_body(&stream.recorder, Some(stream.exchange), bytes.clone());
                Ok(bytes)
            }
            Some(Ok(Message::Close(Some(frame)))) => {
                Err(format!("{CLOSED}: {} {}", u16::from(frame.code), frame.reason))
            }
            Some(Ok(Message::Close(None))) => Err(format!("{CLOSED} without a code")),
            Some(Ok(_)) => continue,
            Some(Err(error)) => Err(format!("the WebSocket broke: {error}")),
            None => Err("the server ended the WebSocket without closing it".to_owned()),
        };
    }
}

/// Sends one frame, as a binary message if it is not UTF-8.
///
/// # Errors
/// Those of the socket.
pub(crate) async fn send(sink: &mut Sink, bytes: Bytes) -> Result<(), LinkError> {
    let message = match std::str::from_utf8(&bytes) {
        Ok(text) => Message::text(text),
        Err(_) => Message::Binary(bytes),
    };
    sink.send(message).await.map_err(|error| LinkError::Ws(Box::new(error)))
}

/// Sends a close frame; the reader of the stream receives that of the server.
pub(crate) async fn close(mut sink: Sink) {
    let _ = sink.send(Message::Close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() }))).await;
}
