use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_tungstenite::{
    accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
        protocol::frame::coding::CloseCode,
    },
};

use super::{LEGACY, MODERN, call};
use crate::{CallOptions, ConnectError, Endpoint, Failure, ServerParams, Session, Target};
use rehearse_testing::{HELLO, greet, result};

/// One connection; returns the code with which the client closed.
async fn server(answer: fn(&Value) -> Vec<Message>) -> (Target, JoinHandle<Option<CloseCode>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("ws://{}/mcp", listener.local_addr().expect("an address"));
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        let mut socket = accept_hdr_async(stream, upgrade).await.ok()?;
        while let Some(Ok(message)) = socket.next().await {
            match message {
                Message::Text(text) => {
                    for answer in answer(&serde_json::from_str(&text).unwrap_or_default()) {
                        socket.send(answer).await.ok()?;
                    }
                }
                Message::Close(frame) => return frame.map(|frame| frame.code),
                _ => {}
            }
        }
        None
    });
    (Target::Ws(Endpoint { url, headers: vec![("x-own".into(), "1".into())] }), task)
}

#[expect(clippy::result_large_err, reason = "the signature is tungstenite's")]
fn upgrade(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if header("sec-websocket-protocol") != Some("mcp") || header("x-own") != Some("1") {
        let mut refusal = ErrorResponse::new(Some("which protocol?".to_owned()));
        *refusal.status_mut() = hyper::StatusCode::FORBIDDEN;
        return Err(refusal);
    }
    response.headers_mut().insert("sec-websocket-protocol", "mcp".parse().expect("a header"));
    Ok(response)
}

fn answer(message: &Value) -> Vec<Message> {
    match message["params"]["name"].as_str() {
        Some("echo") => vec![Message::Ping("p".into()), Message::text(result(message, HELLO))],
        Some("leave") => vec![Message::Close(None)],
        _ => greet(message).into_iter().map(Message::text).collect(),
    }
}

#[tokio::test]
async fn frames_are_text_messages_and_the_end_is_a_close_frame() {
    for protocol in [LEGACY, MODERN] {
        let (target, server) = server(answer).await;
        let session = super::connect(&target, protocol).await;
        assert_eq!(call(&session, "echo", CallOptions::default()).await.expect("a result").text(), "hello");
        session.close().await;
        assert_eq!(server.await.expect("no panic"), Some(CloseCode::Normal));
    }
}

#[tokio::test]
async fn a_server_that_closes_is_a_disconnect() {
    let (target, _server) = server(answer).await;
    let session = super::connect(&target, MODERN).await;
    let failure = call(&session, "leave", CallOptions::default()).await.expect_err("no answer");
    assert!(
        matches!(&failure, Failure::Disconnected { detail } if detail.contains("closed the WebSocket")),
        "{failure}"
    );
    session.close().await;
}

#[tokio::test]
async fn a_refused_upgrade_names_its_status() {
    let (target, _server) = server(answer).await;
    let Target::Ws(Endpoint { url, .. }) = target else { unreachable!("a WebSocket") };
    let target = Target::Ws(Endpoint { url, headers: Vec::new() });
    let error = Session::connect(&ServerParams::new("s", target), LEGACY).await.expect_err("no session");
    assert!(matches!(&error, ConnectError::Http { status: 403, .. }), "{error}");
    assert!(error.to_string().ends_with("which protocol?"), "{error}");
}
