//! Receives the events of subagents.

use std::{io, net::Ipv4Addr, sync::Arc, time::Duration};

use http::{Method, StatusCode, header};
use rehearse_net::{
    Body, ConnectionHandle, ConnectionLimit, HostPolicy, Request, Response, Shutdown, accept, read_body,
};
use tokio::{net::TcpListener, time::timeout};

use super::{EventRecord, PATH};

/// How long the body of a request may take.
const SLOW: Duration = Duration::from_secs(5);
/// The largest event, in bytes.
const MAX_EVENT: usize = 16 << 20;
/// How long events in progress may take at the end.
const GRACE: Duration = Duration::from_secs(5);

/// Called with each event, one at a time for each connection.
type Receive = dyn Fn(EventRecord) + Send + Sync;

/// Listens for events on a free port of 127.0.0.1. Dropping it ends it at once; [`EventListener::stop`] ends it in order.
pub struct EventListener {
    url: String,
    shutdown: Shutdown,
}

struct State {
    hosts: HostPolicy,
    receive: Box<Receive>,
}

impl EventListener {
    /// Listens, and calls `receive` with each event.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(receive: impl Fn(EventRecord) + Send + Sync + 'static) -> io::Result<EventListener> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State { hosts: HostPolicy::new(address.ip(), []), receive: Box::new(receive) });
        let shutdown = Shutdown::default();
        let service = move |request, _: &ConnectionHandle| handle(state.clone(), request);
        shutdown.tasks.spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
        Ok(EventListener { url: format!("http://{address}"), shutdown })
    }

    /// The value of the variable for subagents.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the listener when the events in progress have arrived.
    pub async fn stop(self) {
        self.shutdown.end(GRACE).await;
    }
}

impl Drop for EventListener {
    fn drop(&mut self) {
        self.shutdown.stop.cancel();
        self.shutdown.kill.cancel();
    }
}

async fn handle(state: Arc<State>, request: Request) -> Response {
    let (status, text) = match answer(&state, request).await {
        Ok(()) => (StatusCode::OK, ""),
        Err(refusal) => refusal,
    };
    let mut response = Response::new(Body::whole(text.as_bytes().to_vec()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

async fn answer(state: &State, request: Request) -> Result<(), (StatusCode, &'static str)> {
    if state.hosts.check(request.headers(), request.uri()).is_err() {
        return Err((StatusCode::FORBIDDEN, "Forbidden"));
    }
    if request.uri().path() != PATH {
        return Err((StatusCode::NOT_FOUND, "404 page not found"));
    }
    if request.method() != Method::POST {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed"));
    }
    let body = timeout(SLOW, read_body(request.into_body(), MAX_EVENT)).await;
    let body = body.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "Request Timeout"))?;
    let body = body.map_err(|_| (StatusCode::BAD_REQUEST, "Bad Request"))?;
    let record = serde_json::from_slice(&body).map_err(|_| (StatusCode::BAD_REQUEST, "Bad Request: invalid JSON"))?;
    (state.receive)(record);
    Ok(())
}
