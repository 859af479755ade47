//! Connections without a session object: they send prepared requests and give back the bytes of the answer, with the
//! times. Nothing is recorded, so that a run may last for hours.

mod duplex;
mod http;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use rehearse_client::{ConnectError, ServerParams, Target};
use rehearse_protocol::{Era, Version};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use self::{
    duplex::{DuplexConnection, DuplexLane},
    http::{HttpConnection, HttpLane},
};
use crate::request::{PreparedRequest, RequestTemplate};

/// A connection or session with a server, after the handshake.
pub(crate) enum Connection {
    Http(Arc<HttpConnection>),
    Duplex(Arc<DuplexConnection>),
}

/// Sends one request at a time on a connection. Over HTTP it has a socket of its own.
pub(crate) enum Lane {
    Http(Box<HttpLane>),
    Duplex(DuplexLane),
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoAnswer {
    /// HTTP 429, with what `Retry-After` says.
    Throttled(Option<Duration>),
    /// The connection is of no more use.
    Lost(String),
    /// Anything else; the connection may be used on.
    Failed(String),
}

/// Why a connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the handshake failed: {0}")]
    Handshake(String),
}

impl Connection {
    /// Connects, and shakes hands in a version.
    pub(crate) async fn open(params: &ServerParams, version: Version) -> Result<Connection, OpenError> {
        let connection = match &params.target {
            Target::Http(at) => Connection::Http(Arc::new(HttpConnection::new(at, version)?)),
            _ => Connection::Duplex(Arc::new(DuplexConnection::open(params).await?)),
        };
        let greeting = async {
            let greeted = connection.greet(version).await;
            greeted.map_err(|why| OpenError::Handshake(why.to_string()))
        };
        let limit = params.timeouts.connect;
        let greeted = timeout(limit, greeting).await;
        match greeted.unwrap_or_else(|_| Err(OpenError::Handshake(format!("no answer within {limit:?}")))) {
            Ok(()) => Ok(connection),
            Err(error) => {
                let lines = connection.last_lines();
                connection.close().await;
                match lines.is_empty() {
                    true => Err(error),
                    false => Err(OpenError::Handshake(format!("{error}; its last output:\n{}", lines.join("\n")))),
                }
            }
        }
    }

    pub(crate) fn lane(&self) -> Lane {
        match self {
            Connection::Http(connection) => Lane::Http(Box::new(HttpLane::new(connection.clone()))),
            Connection::Duplex(connection) => Lane::Duplex(DuplexLane::new(connection.clone())),
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

    /// Ends the session. Its lanes must be gone.
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

    /// `initialize` and `notifications/initialized`, or `server/discover`.
    async fn greet(&self, version: Version) -> Result<(), NoAnswer> {
        let mut lane = self.lane();
        if version.era() == Era::Modern {
            let template = RequestTemplate::new("server/discover", json!({}), version);
            return lane.exchange(&template.request(0)).await.and_then(|exchange| result(&exchange.reply).map(drop));
        }
        let params = json!({
            "protocolVersion": version.as_str(), "capabilities": {}, "clientInfo": crate::request::client_info(),
        });
        let template = RequestTemplate::new("initialize", params, version);
        let found = result(&lane.exchange(&template.request(0)).await?.reply)?;
        if found["protocolVersion"] != version.as_str() {
            return Err(NoAnswer::Failed(format!("the server speaks {}, not {version}", found["protocolVersion"])));
        }
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        lane.notify(Bytes::from_static(notification.as_bytes())).await
    }
}

impl Lane {
    /// Sends a request and waits for its answer.
    pub(crate) async fn exchange(&mut self, request: &PreparedRequest<'_>) -> Result<Exchange, NoAnswer> {
        match self {
            Lane::Http(lane) => lane.exchange(request).await,
            Lane::Duplex(lane) => lane.exchange(request).await,
        }
    }

    async fn notify(&mut self, bytes: Bytes) -> Result<(), NoAnswer> {
        match self {
            Lane::Http(lane) => lane.notify(bytes).await,
            Lane::Duplex(lane) => lane.notify(bytes).await,
        }
    }
}

/// The result of an answer to a request of the handshake.
pub(crate) fn result(reply: &[u8]) -> Result<Value, NoAnswer> {
    let reply: Value =
        serde_json::from_slice(reply).map_err(|_| NoAnswer::Failed("an answer that is no JSON".into()))?;
    match reply.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(NoAnswer::Failed(format!("error {}: {}", reply["error"]["code"], reply["error"]["message"]))),
    }
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoAnswer::Throttled(_) => f.write_str("HTTP 429"),
            NoAnswer::Lost(why) | NoAnswer::Failed(why) => f.write_str(why),
        }
    }
}
