//! WebSocket: each frame is one text message, and cancellation works as on stdio.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{
    connection::{Caller, Connection, ConnectionOutput},
    connection_trace::ConnectionTrace,
    http::RequestHead,
    http_exchange::HttpExchange,
    lifetime::ServerLifetime,
    server_state::ServerState,
};
use crate::{
    faults::{Packet, SendStep, Stop},
    journal::Refusal,
    script::Token,
};
use rehearse_net::{
    ConnectionHandle, Disconnect, Request, Response,
    ws::{self, Received, Receiver, Sender},
};
use rehearse_protocol::{Closed, Direction, Transport};

/// How long a client may take to close its side.
const CLOSING: Duration = Duration::from_secs(1);

pub(super) fn open(
    state: Arc<ServerState>,
    head: &RequestHead,
    request: Request,
    token: Option<Arc<Token>>,
) -> Response {
    match ws::accept_key(request.headers()) {
        Ok(key) => {
            let task = serve(state.clone(), request, token);
            state.lifetime.shutdown.tasks.spawn(task);
            ws::switch(key)
        }
        Err(refusal) => {
            let mut response = state.refuse(head, refusal.status(), Refusal::Header, refusal.to_string());
            response.headers_mut().extend(refusal.headers());
            response
        }
    }
}

async fn serve(state: Arc<ServerState>, request: Request, token: Option<Arc<Token>>) {
    let handle = request.extensions().get::<ConnectionHandle>().cloned().unwrap_or_default();
    let headers = Some(request.headers().clone());
    let trace = request.extensions().get().map(HttpExchange::trace);
    let trace = trace.as_deref();
    let upgraded = tokio::select! {
        upgraded = ws::upgrade(request) => upgraded,
        () = state.lifetime.shutdown.kill.cancelled() => return,
    };
    let Ok((mut sender, mut receiver)) = upgraded else { return };
    let lifetime = ServerLifetime::start(state.lifetime.started);
    let caller = Caller { token, headers };
    let (connection, frames) =
        Connection::open(state.engine.clone(), Transport::Ws, None, caller, lifetime, Some(state.lifetime.clone()));
    let writing = write(frames, trace, &mut sender);
    let reading = async {
        let close = read(&state, &connection, trace, &mut receiver).await;
        if let Some((CloseCode::Away, _)) = close {
            connection.finish().await;
        }
        connection.cancel().await;
        let exit_code = connection.exit_code();
        // Without it the frames end.
        drop(connection);
        close.ok_or(exit_code)
    };
    let serving = async {
        let (mut reading, mut writing) = (pin!(reading), pin!(writing));
        tokio::select! {
            read = reading.as_mut() => match read {
                Ok(close) => (Some(close), writing.await),
                Err(exit_code) => (None, exit_code.map(Stop::Exit)),
            },
            stop = writing.as_mut() => (None, stop),
        }
    };
    let (close, stop) = tokio::select! {
        ended = serving => ended,
        () = state.lifetime.shutdown.kill.cancelled() => return,
    };
    let close = match stop {
        Some(Stop::Close(code)) => Some((code.into(), "")),
        Some(stop) => return end(&state, &handle, sender, stop).await,
        None => close,
    };
    if let Some((code, reason)) = close {
        tokio::select! {
            () = self::close(&state, sender, receiver, code, reason) => {}
            () = state.lifetime.shutdown.kill.cancelled() => {}
        }
    }
}

/// Closes the connection when the client has closed its side as well. Unread data would reset the connection, and the
/// close frame could be lost (RFC 6455, 7.1.1). The client has [`CLOSING`] to close its side, unless the server ends
/// before.
async fn close(state: &ServerState, mut sender: Sender, mut receiver: Receiver, code: CloseCode, reason: &'static str) {
    sender.close(code, reason).await;
    let closed = async { while !matches!(receiver.next().await, Received::Closed | Received::Broken(_)) {} };
    tokio::select! {
        () = closed => {}
        () = tokio::time::sleep(CLOSING) => {}
        () = state.lifetime.shutdown.stop.cancelled() => {}
    }
}

/// Receives frames until the connection ends. Returns the close code and the reason, unless the script makes the server
/// exit.
async fn read(
    state: &ServerState,
    connection: &Connection,
    trace: Option<&ConnectionTrace>,
    receiver: &mut Receiver,
) -> Option<(CloseCode, &'static str)> {
    loop {
        let received = tokio::select! {
            received = receiver.next() => received,
            () = state.lifetime.shutdown.stop.cancelled() => return Some((CloseCode::Away, "the server is shutting down")),
            () = connection.closed() => return None,
        };
        if let (Some(trace), Received::Frame(bytes)) = (trace, &received) {
            trace.record_frame(Direction::ClientToServer, bytes.clone());
        }
        match received {
            Received::Frame(bytes) => tokio::select! {
                _ = connection.receive(&bytes, None) => {}
                () = connection.closed() => return None,
            },
            Received::Binary => {
                connection.note_refusal("messages must be text");
                return Some((CloseCode::Unsupported, "messages must be text"));
            }
            Received::Broken(code) => return Some((code, "")),
            Received::Closed => {
                if let Some(trace) = trace {
                    trace.close(Closed::by_client("the client closed the connection"));
                }
                return Some((CloseCode::Normal, ""));
            }
        }
    }
}

/// Ends the connection for a fault that does not close it.
async fn end(state: &ServerState, handle: &ConnectionHandle, mut sender: Sender, stop: Stop) {
    match stop {
        Stop::Reset => {
            handle.disconnect(Disconnect::Reset);
            // The frame is cut off here.
            let _ = sender.flush().await;
        }
        Stop::Exit(code) => state.lifetime.exit(code),
        Stop::Close(_) | Stop::Finish | Stop::Hang => {}
    }
}

/// Sends until there are no more frames, the client is gone, or a fault ends the connection.
async fn write(
    mut frames: mpsc::Receiver<ConnectionOutput>,
    trace: Option<&ConnectionTrace>,
    sender: &mut Sender,
) -> Option<Stop> {
    while let Some(outgoing) = frames.recv().await {
        if let Some(trace) = trace {
            outgoing.record(trace);
        }
        let stop = match outgoing {
            ConnectionOutput::Frame(frame) => {
                sender.send(frame).await.ok()?;
                None
            }
            ConnectionOutput::Packet(packet) => write_packet(*packet, sender).await?,
            ConnectionOutput::Stop(stop) => Some(stop),
        };
        match stop {
            None => {}
            // Nothing can be sent after half a message.
            Some(Stop::Hang) => while frames.recv().await.is_some() {},
            Some(stop) => return Some(stop),
        }
    }
    None
}

/// Sends a frame unchanged: in fragments, and always as text. Returns how it ends, or `None` if the client is gone.
async fn write_packet(packet: Packet, sender: &mut Sender) -> Option<Option<Stop>> {
    let mut left = packet.sent().len();
    let (is_whole, mut is_first) = (packet.cut.is_none(), true);
    if left == 0 && is_whole {
        sender.send_fragment(Bytes::new(), true, true).await.ok()?;
    }
    for step in packet.steps(|bytes, _| bytes) {
        match step {
            SendStep::Bytes(bytes) => {
                left -= bytes.len();
                sender.send_fragment(bytes, is_first, is_whole && left == 0).await.ok()?;
                is_first = false;
            }
            SendStep::Wait(time) => tokio::time::sleep(time).await,
            SendStep::Stop(stop) => return Some(Some(stop)),
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        time::timeout,
    };

    use crate::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer},
    };
    use rehearse_document::Source;

    const SCRIPT: &str = "faults: [{ on: { method: ping }, do: { close: { code: 1011 } } }]";
    const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    /// A masked frame of less than 126 bytes.
    fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("short");
        [&[0x80 | opcode, 0x80 | length, 0, 0, 0, 0], payload].concat()
    }

    /// A connection on which the server has sent a close frame.
    async fn closing(server: &MockServer) -> TcpStream {
        let mut stream = TcpStream::connect(server.address()).await.expect("connects");
        stream.write_all(UPGRADE.as_bytes()).await.expect("writes");
        stream.write_all(&frame(1, PING.as_bytes())).await.expect("writes");
        let (mut read, close) = (Vec::new(), [&[0x88, 2], &1011_u16.to_be_bytes()[..]].concat());
        while !read.ends_with(&close) {
            assert_ne!(stream.read_buf(&mut read).await.expect("reads"), 0, "{}", String::from_utf8_lossy(&read));
        }
        stream
    }

    #[tokio::test]
    async fn late_frames_of_a_client_do_not_reset_a_closed_connection() {
        let script = Script::parse(&Source::new("s", SCRIPT)).unwrap_or_else(|error| panic!("{error}"));
        let engine = Engine::new(script, 1, Journal::default());
        let server = MockServer::start(engine, ListenOptions::default()).await.expect("binds");
        let story = async {
            let mut rest = Vec::new();
            let mut stream = closing(&server).await;
            for _ in 0..1000 {
                stream.write_all(&frame(1, PING.as_bytes())).await.expect("is read");
            }
            stream.write_all(&frame(8, &1011_u16.to_be_bytes())).await.expect("is read");
            assert_eq!(stream.read_to_end(&mut rest).await.expect("an end in order"), 0);
            let mut silent = closing(&server).await;
            assert_eq!(silent.read_to_end(&mut rest).await.expect("an end in order"), 0, "the connection ends");
            let mut last = closing(&server).await;
            server.stop(std::time::Duration::from_secs(60)).await;
            assert_eq!(last.read_to_end(&mut rest).await.expect("an end in order"), 0);
        };
        timeout(std::time::Duration::from_secs(60), story).await.expect("in time");
    }
}
