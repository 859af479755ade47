//! A server that ends its connection on broken input, in every way in which it can: the judges see the same.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::{Method, StatusCode, header};
use rehearse_check::{CheckOptions, check};
use rehearse_client::{Endpoint, ServerParams, Target};
use rehearse_net::{Body, ConnectionHandle, ConnectionLimit, Disconnect, Request, Response, Shutdown, accept, ws};
use rehearse_protocol::{MAX_FRAME, Message, Transport, Version, message, sse};
use rehearse_report::check::{CheckVerdict, JudgedCheck};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// The case `malformed/truncated`, and one that comes before it.
const TRUNCATED: &str = r#"{"jsonrpc":"2.0","id":1,"#;
const NUMBER: &str = "42";
/// Everything that is no message.
const ANYTHING_BROKEN: &str = "";

/// How the server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// As the transport prescribes it.
    Clean,
    /// In the middle of a body, or without a close frame.
    Cut,
    Reset,
    /// With a text message that is not UTF-8.
    NotUtf8,
}

/// What the server does next on a connection.
enum Step {
    Send(Bytes),
    End,
}

struct Server {
    /// What it does not bear.
    fatal: &'static str,
    end: End,
    /// The status of a POST to a stream that has ended.
    gone: StatusCode,
    streams: Mutex<HashMap<String, mpsc::UnboundedSender<Step>>>,
    opened: AtomicUsize,
}

/// What the server does after a frame.
fn step(fatal: &str, frame: &Bytes) -> Option<Step> {
    match Message::parse(frame) {
        _ if frame == fatal => Some(Step::End),
        Err(_) if fatal == ANYTHING_BROKEN => Some(Step::End),
        Ok(Message::Request(request)) => Some(Step::Send(match &*request.method {
            "initialize" => message::result(
                &request.id,
                r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"ends","version":"1"}}"#,
            ),
            "ping" => message::result(&request.id, "{}"),
            _ => message::error(Some(&request.id), &message::RpcError::new(message::METHOD_NOT_FOUND, "unknown")),
        })),
        Err(error) => Some(Step::Send(message::error(
            error.id(),
            &message::RpcError::new(message::INVALID_REQUEST, error.to_string()),
        ))),
        Ok(_) => None,
    }
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::whole(""));
    *response.status_mut() = status;
    response
}

impl Server {
    async fn answer(&self, request: Request, handle: ConnectionHandle) -> Response {
        let session = request.uri().query().unwrap_or_default().to_owned();
        if request.method() == Method::GET && request.headers().contains_key(header::UPGRADE) {
            return self.upgrade(request, handle);
        }
        if request.method() == Method::GET {
            return self.open(handle);
        }
        let body = rehearse_net::read_body(request.into_body(), MAX_FRAME).await.expect("a body");
        let streams = self.streams.lock().expect("no panic");
        let Some(sender) = streams.get(&session).filter(|sender| !sender.is_closed()) else {
            return status(self.gone);
        };
        if let Some(step) = step(self.fatal, &body) {
            let _ = sender.send(step);
        }
        status(StatusCode::ACCEPTED)
    }

    /// A stream of HTTP+SSE.
    fn open(&self, handle: ConnectionHandle) -> Response {
        let session = format!("s{}", self.opened.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = mpsc::unbounded_channel();
        self.streams.lock().expect("no panic").insert(session.clone(), sender);
        let first = Bytes::from(format!("event: endpoint\ndata: /post?{session}\n\n"));
        let end = self.end;
        let steps = stream::unfold(receiver, move |mut receiver| {
            let handle = handle.clone();
            async move {
                match (receiver.recv().await, end) {
                    (Some(Step::Send(frame)), _) => Some((sse::Event::message(frame).encode(), receiver)),
                    (Some(Step::End), End::Cut | End::Reset) => {
                        receiver.close();
                        let how = if end == End::Cut { Disconnect::Close } else { Disconnect::Reset };
                        handle.disconnect_and_wait(how).await
                    }
                    (Some(Step::End) | None, _) => None,
                }
            }
        });
        let mut response = Response::new(Body::stream(stream::once(future::ready(first)).chain(steps)));
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
        response
    }

    fn upgrade(&self, request: Request, handle: ConnectionHandle) -> Response {
        let Ok(accept) = ws::accept_key(request.headers()) else { return status(StatusCode::BAD_REQUEST) };
        let (fatal, end) = (self.fatal, self.end);
        tokio::spawn(async move {
            let Ok((mut sender, mut receiver)) = ws::upgrade(request).await else { return };
            while let ws::Received::Frame(frame) = receiver.next().await {
                match (step(fatal, &frame), end) {
                    (Some(Step::Send(answer)), _) => drop(sender.send(answer).await),
                    (Some(Step::End), End::Clean) => return sender.close(CloseCode::Normal, "").await,
                    (Some(Step::End), End::NotUtf8) => {
                        let _ = sender.send_fragment(Bytes::from_static(b"\xff"), true, true).await;
                    }
                    (Some(Step::End), End::Cut) => return,
                    (Some(Step::End), End::Reset) => {
                        handle.disconnect(Disconnect::Reset);
                        let _ = sender.flush().await;
                        return;
                    }
                    (None, _) => {}
                }
            }
        });
        ws::switch(accept)
    }
}

/// The verdicts on a server.
async fn judged(transport: Transport, fatal: &'static str, end: End, gone: StatusCode) -> Vec<JudgedCheck> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (address, shutdown) = (listener.local_addr().expect("bound"), Shutdown::default());
    let server = Arc::new(Server { fatal, end, gone, streams: Mutex::default(), opened: AtomicUsize::default() });
    let service = move |request, handle: &ConnectionHandle| {
        let (server, handle) = (server.clone(), handle.clone());
        async move { server.answer(request, handle).await }
    };
    let accepting = tokio::spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
    let at = |scheme: &str| Endpoint { url: format!("{scheme}://{address}/"), headers: Vec::new() };
    let target = if transport == Transport::Ws { Target::Ws(at("ws")) } else { Target::Sse(at("http")) };
    let versions = vec![Version::V2024_11_05];
    let options = CheckOptions { versions, grace: Duration::from_millis(50), ..CheckOptions::default() };
    let run = check(&ServerParams::new("server", target), &options).await;
    let checks = run.checked.versions.into_iter().next().expect("a version").checks;
    shutdown.end(Duration::ZERO).await;
    accepting.await.expect("no panic");
    checks
}

/// The verdict on a check, and its reason.
fn found<'r>(checks: &'r [JudgedCheck], id: &str) -> (CheckVerdict, &'r str) {
    let check = checks.iter().find(|check| check.id == id).expect("a check");
    (check.verdict, check.reason.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn however_a_server_ends_a_connection_the_verdict_is_the_same() {
    let (accepted, gone) = (StatusCode::ACCEPTED, StatusCode::NOT_FOUND);
    let ends = [
        (Transport::Sse, End::Clean, accepted),
        (Transport::Sse, End::Cut, accepted),
        (Transport::Sse, End::Reset, accepted),
        (Transport::Sse, End::Clean, gone),
        (Transport::Sse, End::Reset, gone),
        (Transport::Ws, End::Clean, gone),
        (Transport::Ws, End::Cut, gone),
        (Transport::Ws, End::Reset, gone),
        (Transport::Ws, End::NotUtf8, gone),
    ];
    for (transport, end, gone) in ends {
        let what = format!("{transport} {end:?} {gone}");
        let checks = judged(transport, TRUNCATED, end, gone).await;
        assert_eq!(found(&checks, "rpc.invalid.parse-survives"), (CheckVerdict::Warn, ""), "{what}");
        let (is_utf8, _) = found(&checks, "ws.frame.utf8");
        assert_eq!(is_utf8 == CheckVerdict::Warn, end == End::NotUtf8, "{what}: {is_utf8:?}");
    }
}

#[tokio::test]
async fn what_was_still_to_be_sent_goes_on_with_another_connection() {
    for end in [End::Clean, End::Reset] {
        let checks = judged(Transport::Ws, NUMBER, end, StatusCode::NOT_FOUND).await;
        for check in ["rpc.invalid.parse-survives", "rpc.invalid.params-array"] {
            assert_eq!(found(&checks, check).0, CheckVerdict::Pass, "{check} {end:?}");
        }
    }
}

#[tokio::test]
async fn what_was_still_to_be_sent_is_not_tested_if_the_server_ends_each_connection() {
    for end in [End::Clean, End::Reset] {
        let checks = judged(Transport::Ws, ANYTHING_BROKEN, end, StatusCode::NOT_FOUND).await;
        for check in ["rpc.invalid.parse-survives", "rpc.extra.deep-nesting", "rpc.invalid.params-array"] {
            let expected = (CheckVerdict::NotTested, "the server had ended the connection");
            assert_eq!(found(&checks, check), expected, "{check} {end:?}");
        }
        // It is about no case.
        let expected = (CheckVerdict::NotTested, "the server sent no progress");
        assert_eq!(found(&checks, "progress.token.only-known"), expected);
        // Its case was sent on another connection.
        assert_eq!(found(&checks, "rpc.method.unknown-no-crash").0, CheckVerdict::Pass);
    }
}
