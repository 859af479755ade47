//! WebSocket: one text message a frame, cancellation as on stdio.

use std::{pin::pin, sync::Arc};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{
    Shared,
    connection::{Caller, Connection, Outgoing},
    life::Life,
};
use crate::{
    mock::{
        faults::{Packet, Step, Stop},
        script::Token,
    },
    transport::{
        Transport,
        server::{
            Break, Line, Request, Response,
            ws::{self, Received, Receiver, Sender},
        },
    },
};

pub(super) fn open(shared: Arc<Shared>, request: Request, token: Option<Arc<Token>>) -> Response {
    match ws::accept_key(request.headers()) {
        Ok(key) => {
            let task = serve(shared.clone(), request, token);
            shared.life.shutdown.tasks.spawn(task);
            ws::switch(key)
        }
        Err(refusal) => {
            let mut response = shared.refuse(Transport::Ws, refusal.status(), &refusal.to_string());
            response.headers_mut().extend(refusal.headers());
            response
        }
    }
}

async fn serve(shared: Arc<Shared>, request: Request, token: Option<Arc<Token>>) {
    let line = request.extensions().get::<Line>().cloned().unwrap_or_default();
    let headers = Some(request.headers().clone());
    let upgraded = tokio::select! {
        upgraded = ws::upgrade(request) => upgraded,
        () = shared.life.shutdown.kill.cancelled() => return,
    };
    let Ok((mut sender, mut receiver)) = upgraded else { return };
    let life = Life::begin(shared.life.started);
    let caller = Caller { token, headers };
    let (connection, frames) =
        Connection::open(shared.engine.clone(), Transport::Ws, caller, life, Some(shared.life.clone()));
    let writing = write(frames, &mut sender);
    let reading = async {
        let close = read(&shared, &connection, &mut receiver).await;
        if let Some((CloseCode::Away, _)) = close {
            connection.finish().await;
        }
        connection.cancel().await;
        let died = connection.died();
        // Without it there is an end to what is sent.
        drop(connection);
        close.ok_or(died)
    };
    let serving = async {
        let (mut reading, mut writing) = (pin!(reading), pin!(writing));
        tokio::select! {
            read = reading.as_mut() => match read {
                Ok(close) => (Some(close), writing.await),
                Err(died) => (None, died.map(Stop::Exit)),
            },
            stop = writing.as_mut() => (None, stop),
        }
    };
    let (close, stop) = tokio::select! {
        ended = serving => ended,
        () = shared.life.shutdown.kill.cancelled() => return,
    };
    match (close, stop) {
        (_, Some(stop)) => end(&shared, &line, sender, stop).await,
        (Some((code, reason)), None) => sender.close(code, reason).await,
        (None, None) => {}
    }
}

/// Takes frames until the connection ends: with which code and why it is to be closed, unless the script lets the
/// server die.
async fn read(shared: &Shared, connection: &Connection, receiver: &mut Receiver) -> Option<(CloseCode, &'static str)> {
    loop {
        let received = tokio::select! {
            received = receiver.next() => received,
            () = shared.life.shutdown.stop.cancelled() => return Some((CloseCode::Away, "the server is shutting down")),
            () = connection.closed() => return None,
        };
        match received {
            Received::Frame(bytes) => tokio::select! {
                _ = connection.receive(&bytes, None) => {}
                () = connection.closed() => return None,
            },
            Received::Binary => return Some((CloseCode::Unsupported, "messages are text")),
            Received::Broken(code) => return Some((code, "")),
            Received::Closed => return Some((CloseCode::Normal, "")),
        }
    }
}

/// Ends the connection as a fault wants it.
async fn end(shared: &Shared, line: &Line, mut sender: Sender, stop: Stop) {
    match stop {
        Stop::Close(code) => sender.close(code.into(), "").await,
        Stop::Reset => {
            line.break_off(Break::Reset);
            // Here it breaks.
            let _ = sender.flush().await;
        }
        Stop::Exit(code) => shared.life.die(code),
        Stop::Finish | Stop::Hang => {}
    }
}

/// Sends until there is nothing more to come, the client is gone, or a fault ends the connection.
async fn write(mut frames: mpsc::Receiver<Outgoing>, sender: &mut Sender) -> Option<Stop> {
    while let Some(outgoing) = frames.recv().await {
        let stop = match outgoing {
            Outgoing::Frame(frame) => {
                sender.send(frame).await.ok()?;
                None
            }
            Outgoing::Packet(packet) => write_packet(*packet, sender).await?,
            Outgoing::Stop(stop) => Some(stop),
        };
        match stop {
            None => {}
            // What is behind half a message can never be sent.
            Some(Stop::Hang) => while frames.recv().await.is_some() {},
            Some(stop) => return Some(stop),
        }
    }
    None
}

/// Sends a frame as it is: in fragments, and as text whatever its bytes are. How it ends, unless the client is gone.
async fn write_packet(packet: Packet, sender: &mut Sender) -> Option<Option<Stop>> {
    let mut left = packet.sent().len();
    let (is_whole, mut is_first) = (packet.cut.is_none(), true);
    if left == 0 && is_whole {
        sender.send_fragment(Bytes::new(), true, true).await.ok()?;
    }
    for step in packet.steps(|bytes, _| bytes) {
        match step {
            Step::Bytes(bytes) => {
                left -= bytes.len();
                sender.send_fragment(bytes, is_first, is_whole && left == 0).await.ok()?;
                is_first = false;
            }
            Step::Wait(time) => tokio::time::sleep(time).await,
            Step::Stop(stop) => return Some(Some(stop)),
        }
    }
    Some(None)
}
