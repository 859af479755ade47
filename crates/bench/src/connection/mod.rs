//! Connections without a session object: they send prepared requests and give back the bytes of the answer, with the
//! times. Nothing is recorded, so that a run may last for hours.

mod duplex;
mod http;

use std::{sync::Arc, time::Duration};

use ::http::HeaderMap;
use bytes::Bytes;
use rehearse_client::{ConnectError, Handshake, HandshakeError, HandshakeStep, ServerParams, Target};
use rehearse_protocol::{Direction, Era, Message, Protocol, Version, message};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use self::{
    duplex::{DuplexConnection, DuplexRequester},
    http::{HttpConnection, HttpRequester},
};
use crate::{
    BenchSink,
    operation::InvalidAnswer,
    request::{self, PreparedRequest, RequestTemplate},
};

/// A connection or session with a server, after the handshake.
pub(crate) enum Connection {
    Http(Arc<HttpConnection>),
    Duplex(Arc<DuplexConnection>),
}

/// Sends one request at a time on a connection. Over HTTP it has a socket of its own.
pub(crate) enum Requester {
    Http(Box<HttpRequester>),
    Duplex(DuplexRequester),
}

/// An answer, and when it came.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// When the first event of a stream came.
    pub(crate) first_event: Option<Instant>,
    pub(crate) end: Instant,
    pub(crate) reply: Bytes,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// HTTP 429, with what `Retry-After` says.
    #[error("HTTP 429")]
    Throttled(Option<Duration>),
    /// The connection is of no more use.
    #[error("{0}")]
    Lost(String),
    /// Anything else; the connection may be used on.
    #[error("{0}")]
    Failed(String),
    /// It came, and is wrong; the connection may be used on.
    #[error(transparent)]
    Invalid(#[from] InvalidAnswer),
}

/// Why a connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the handshake failed: {0}")]
    Handshake(#[from] NoAnswer),
    #[error("the handshake failed: no answer within {0:?}")]
    Timeout(Duration),
    /// Any of them, with the last lines of the process.
    #[error("{source}; its last output:\n{}", .lines.join("\n"))]
    WithOutput { source: Box<OpenError>, lines: Vec<String> },
}

impl Connection {
    /// Connects, and opens a session in a version.
    pub(crate) async fn open(params: &ServerParams, version: Version) -> Result<Connection, OpenError> {
        let connection = match &params.target {
            Target::Http(at) => Connection::Http(Arc::new(HttpConnection::new(at, version)?)),
            _ => Connection::Duplex(Arc::new(DuplexConnection::open(params).await?)),
        };
        let limit = params.timeouts.connect;
        let opened = timeout(limit, connection.handshake(version)).await;
        match opened.map_or(Err(OpenError::Timeout(limit)), |opened| opened.map_err(OpenError::from)) {
            Ok(()) => Ok(connection),
            Err(error) => {
                let lines = connection.last_lines();
                connection.close().await;
                match lines.is_empty() {
                    true => Err(error),
                    false => Err(OpenError::WithOutput { source: Box::new(error), lines }),
                }
            }
        }
    }

    pub(crate) fn requester(&self) -> Requester {
        match self {
            Connection::Http(connection) => Requester::Http(Box::new(HttpRequester::new(connection.clone()))),
            Connection::Duplex(connection) => Requester::Duplex(DuplexRequester::new(connection.clone())),
        }
    }

    /// The process of the server.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Connection::Http(_) => None,
            Connection::Duplex(connection) => connection.process(),
        }
    }

    fn last_lines(&self) -> Vec<String> {
        match self {
            Connection::Http(_) => Vec::new(),
            Connection::Duplex(connection) => connection.last_lines(),
        }
    }

    /// Ends the session. Its requesters must be gone.
    pub(crate) async fn close(self) {
        match self {
            Connection::Http(connection) => connection.end_session().await,
            Connection::Duplex(connection) => {
                if let Some(connection) = Arc::into_inner(connection) {
                    connection.close().await;
                }
            }
        }
    }

    async fn handshake(&self, version: Version) -> Result<(), NoAnswer> {
        let (mut requester, mut exchange) = (self.requester(), request::exchange(version));
        let (mut handshake, mut next) = Handshake::begin(Protocol::Exact(version), false, &mut exchange);
        let info = loop {
            let template = RequestTemplate::of(handshake.method(), &next, &exchange);
            let reply = requester.exchange(&template.request(0), None).await?.reply;
            let answer = match Message::parse(&reply) {
                Ok(Message::Response(response)) => response.outcome.map_err(HandshakeError::Refused),
                Ok(_) => return Err(NoAnswer::Failed("an answer that is not a response".to_owned())),
                Err(error) => return Err(NoAnswer::Failed(error.to_string())),
            };
            match handshake.receive(answer, &mut exchange) {
                HandshakeStep::Request(request) => next = request,
                HandshakeStep::Opened(info) => break info,
                HandshakeStep::Failed(error) => return Err(NoAnswer::Failed(error.to_string())),
            }
        };
        if info.version.known() != Some(version) {
            return Err(NoAnswer::Failed(format!("the server speaks {}, not {version}", info.version)));
        }
        if version.era() == Era::Modern {
            return Ok(());
        }
        let method = "notifications/initialized";
        let notification = message::bare_notification(method);
        let headers = exchange.headers(Some(method), &notification);
        requester.notify(notification, &headers).await
    }
}

impl Requester {
    /// Sends a request and waits for its answer; the sink sees both.
    pub(crate) async fn exchange(
        &mut self,
        request: &PreparedRequest<'_>,
        sink: Option<&BenchSink>,
    ) -> Result<Exchange, NoAnswer> {
        sink.into_iter().for_each(|sink| sink.note(Direction::ClientToServer, &request.body));
        let exchanged = match self {
            Requester::Http(requester) => requester.exchange(request).await,
            Requester::Duplex(requester) => requester.exchange(request).await,
        }?;
        sink.into_iter().for_each(|sink| sink.note(Direction::ServerToClient, &exchanged.reply));
        Ok(exchanged)
    }

    async fn notify(&mut self, bytes: Bytes, headers: &HeaderMap) -> Result<(), NoAnswer> {
        match self {
            Requester::Http(requester) => requester.notify(bytes, headers).await,
            Requester::Duplex(requester) => requester.notify(bytes).await,
        }
    }
}

/// The result of an answer.
pub(crate) fn result(reply: &[u8]) -> Result<Value, NoAnswer> {
    let reply: Value =
        serde_json::from_slice(reply).map_err(|_| NoAnswer::Failed("an answer that is not JSON".into()))?;
    match reply.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(NoAnswer::Failed(format!("error {}: {}", reply["error"]["code"], reply["error"]["message"]))),
    }
}
