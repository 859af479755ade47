//! WebSocket: one text message a frame, cancellation as on stdio.

use std::sync::Arc;

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{Shared, connection::Connection};
use crate::{
    mock::script::Token,
    transport::{
        Transport,
        server::{
            Request, Response,
            ws::{self, Received},
        },
    },
};

pub(super) fn open(shared: Arc<Shared>, request: Request, token: Option<Arc<Token>>) -> Response {
    match ws::accept_key(request.headers()) {
        Ok(key) => {
            let task = serve(shared.clone(), request, token);
            shared.shutdown.tasks.spawn(task);
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
    let upgraded = tokio::select! {
        upgraded = ws::upgrade(request) => upgraded,
        () = shared.shutdown.kill.cancelled() => return,
    };
    let Ok((mut sender, mut receiver)) = upgraded else { return };
    let (connection, mut frames) = Connection::open(shared.engine.clone(), Transport::Ws, shared.started, token);
    let write = async {
        while let Some(frame) = frames.recv().await {
            if sender.send(frame).await.is_err() {
                return;
            }
        }
    };
    let read = async {
        loop {
            let received = tokio::select! {
                received = receiver.next() => received,
                () = shared.shutdown.stop.cancelled() => return Some((CloseCode::Away, "the server is shutting down")),
            };
            match received {
                Received::Frame(bytes) => connection.receive(&bytes).await,
                Received::Binary => return Some((CloseCode::Unsupported, "messages are text")),
                Received::Broken(code) => return Some((code, "")),
                Received::Closed => return Some((CloseCode::Normal, "")),
            }
        }
    };
    let serve = async {
        let close = read.await;
        if let Some((CloseCode::Away, _)) = close {
            connection.finish().await;
        }
        connection.cancel().await;
        close
    };
    let close = {
        let mut write = std::pin::pin!(write);
        tokio::select! {
            close = serve => close,
            () = write.as_mut() => None,
            () = connection.closed() => None,
            () = shared.shutdown.kill.cancelled() => None,
        }
    };
    if let Some(code) = connection.died() {
        return shared.die(code);
    }
    if let Some((code, reason)) = close {
        while let Ok(frame) = frames.try_recv() {
            if sender.send(frame).await.is_err() {
                return;
            }
        }
        sender.close(code, reason).await;
    }
}
