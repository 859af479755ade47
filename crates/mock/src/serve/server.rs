//! [`MockServer`]: a mock on all network transports.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use http::Method;
use tokio::{io::DuplexStream, net::TcpListener};

use super::{
    authorization::Access,
    http_exchange::HttpExchange,
    issued::Issued,
    lifetime::ServerLifetime,
    path,
    pipe::{PipeEnd, PipeServer},
    recorder::ServerRecorder,
    reorder_gate::ReorderGate,
    router,
    server_state::ServerState,
    session::Sessions,
    sse_streams::SseStreams,
};
use crate::{
    engine::Engine,
    journal::{Handling, Refusal},
};
use rehearse_net::{ConnectionHandle, ConnectionLimit, HostPolicy, MAX_CONNECTIONS, Request, accept};
use rehearse_protocol::{Trace, Transport};

/// How many bytes a pipe holds that were not read yet.
const PIPE: usize = 64 << 10;
/// How long answers may take after a client has closed its end of a pipe.
const PIPE_GRACE: Duration = Duration::from_secs(5);

/// The address and the options of a [`MockServer`].
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// The address to listen on. Port 0 selects a free port.
    pub address: SocketAddr,
    /// More host names that clients may use in `Host` and `Origin`.
    pub allowed_hosts: Vec<String>,
    /// How many connections may be open; further ones get status 503.
    pub max_connections: usize,
    /// Whether requests are answered although HTTP headers of the protocol are missing or wrong, so that more of a client
    /// is seen.
    pub lenient: bool,
    /// What records [traces](MockServer::traces).
    pub recorder: Option<Arc<ServerRecorder>>,
}

impl Default for ListenOptions {
    /// A free port on 127.0.0.1.
    fn default() -> Self {
        ListenOptions {
            address: ([127, 0, 0, 1], 0).into(),
            allowed_hosts: Vec::new(),
            max_connections: MAX_CONNECTIONS,
            lenient: false,
            recorder: None,
        }
    }
}

/// A mock that listens on all network transports.
///
/// ```
/// use rehearse_mock::{MockServer, Tool};
/// use rehearse_protocol::Transport;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder().tool(Tool::new("echo").reply("{{ args.text }}")).start().await?;
/// let url = server.url(Transport::Http).expect("a network transport");
/// assert!(url.ends_with("/mcp"));
/// # Ok(())
/// # }
/// ```
///
/// Dropping the server ends it at once; [`MockServer::stop`] lets answers finish first.
#[derive(Debug)]
pub struct MockServer {
    address: SocketAddr,
    pub(super) state: Arc<ServerState>,
    verify_on_drop: bool,
}

impl MockServer {
    /// Binds the address and starts to serve.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start(engine: Arc<Engine>, listen: ListenOptions) -> io::Result<MockServer> {
        let listener = TcpListener::bind(listen.address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(ServerState {
            engine,
            lifetime: ServerLifetime::start(Instant::now()),
            hosts: HostPolicy::new(address.ip(), listen.allowed_hosts),
            sessions: Sessions::default(),
            streams: SseStreams::default(),
            reorder_gate: Arc::new(ReorderGate::default()),
            issued: Issued::default(),
            lenient: listen.lenient,
            recorder: listen.recorder,
        });
        let service = {
            let state = state.clone();
            move |mut request: Request, connection: &ConnectionHandle| {
                // A connection may outlive the current script.
                if request.method() != Method::POST || state.engine.has_faults() {
                    request.extensions_mut().insert(connection.clone());
                }
                let access = state.access(&request);
                let exchange = state.recorder.as_ref().map(|recorder| {
                    let transport = path::transport(request.uri().path());
                    let opens_sessions = transport == Transport::Http && state.engine.http().sessions;
                    let tasks = &state.lifetime.shutdown.tasks;
                    let has_tokens = state.engine.auth(|_| ()).is_some();
                    let exchange = match access {
                        Access::Public | Access::Refused(_) if has_tokens => {
                            HttpExchange::of_authorization(recorder, tasks, &request, connection)
                        }
                        _ => HttpExchange::begin(
                            recorder,
                            tasks,
                            &request,
                            connection,
                            transport,
                            opens_sessions,
                            state.lenient,
                        ),
                    };
                    request.extensions_mut().insert(exchange.clone());
                    exchange
                });
                let state = state.clone();
                async move {
                    // A server that has exited answers nothing, even before its last connection is closed.
                    if state.lifetime.exit_code().is_some() {
                        std::future::pending::<()>().await;
                    }
                    let response = router::handle(state, request, access).await;
                    match exchange {
                        None => response,
                        Some(exchange) => exchange.respond(response),
                    }
                }
            }
        };
        let limit = {
            let (state, max) = (Arc::downgrade(&state), listen.max_connections);
            ConnectionLimit::new(max, move || {
                if let Some(state) = state.upgrade() {
                    let why = format!("503: no more than {max} connections may be open");
                    let (at, handling) = (state.lifetime.started.elapsed(), Handling::refused(Refusal::Limit, why));
                    state.engine.journal().record(at, Transport::Http, &[], handling);
                }
            })
        };
        state.lifetime.shutdown.tasks.spawn(accept(listener, limit, state.lifetime.shutdown.clone(), service));
        Ok(MockServer { address, state, verify_on_drop: false })
    }

    /// Sets whether dropping the server panics if an expectation is not met or the client broke the protocol, unless the thread already panics. By
    /// default only servers from [`MockServer::builder`] do.
    pub fn verify_on_drop(&mut self, verify: bool) {
        self.verify_on_drop = verify;
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The engine of the server.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.state.engine
    }

    /// When the server was started.
    pub fn started(&self) -> Instant {
        self.state.lifetime.started
    }

    /// The URL of a network transport; `None` for the others.
    pub fn url(&self, transport: Transport) -> Option<String> {
        path::url(transport, self.address)
    }

    /// Connects a client over a pipe with the framing of stdio. Returns the client's end.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(far);
        let (pipes, lifetime) = (self.pipes(), self.state.lifetime.clone());
        self.state.lifetime.shutdown.tasks.spawn(async move {
            let stop = lifetime.shutdown.stop.clone();
            let ended = pipes.serve(Transport::Memory, reader, writer, stop, PIPE_GRACE).await;
            if let Ok(PipeEnd::Exited(code)) = ended {
                lifetime.exit(code);
            }
        });
        near
    }

    /// A [`PipeServer`] that serves more clients of the same server.
    pub fn pipes(&self) -> PipeServer {
        PipeServer::with_lifetime(self.state.engine.clone(), self.state.lifetime.clone(), self.state.recorder.clone())
    }

    /// The trace of each connection, the oldest first: the events that a client records, from the server's side. Empty
    /// unless [`record_traces`](crate::MockServerBuilder::record_traces) is set.
    ///
    /// A pipe, a WebSocket and a session of HTTP+SSE have one trace each. Over streamable HTTP each legacy session has
    /// one, over all of its TCP connections; requests without a session have one for each TCP connection. The trace of
    /// a session is closed when the client ends the session. With tokens, the requests that are refused without a valid
    /// one have a trace of their own, together with those to the authorization server that the mock is.
    ///
    /// Frames have the bytes that are sent, even if a fault changed them. A request body that is refused unread is not
    /// recorded. The last 256 traces are kept, and of each the last 4096 events, or fewer if they exceed 64 MiB.
    ///
    /// ```
    /// use rehearse_mock::MockServer;
    /// use rehearse_protocol::Direction;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = MockServer::builder().record_traces().start().await?;
    /// // What the client sends here is not a message.
    /// server.verify_on_drop(false);
    /// let mut client = server.connect();
    /// client.write_all(b"not a message\n").await?;
    /// client.read_u8().await?;
    /// let traces = server.traces();
    /// let frames: Vec<_> = traces[0].frames().map(|frame| (frame.direction, &frame.bytes[..])).collect();
    /// assert_eq!(frames[0], (Direction::ClientToServer, &b"not a message"[..]));
    /// assert_eq!(frames[1].0, Direction::ServerToClient);
    /// # Ok(())
    /// # }
    /// ```
    pub fn traces(&self) -> Vec<Trace> {
        self.state.recorder.as_ref().map(|recorder| recorder.traces()).unwrap_or_default()
    }

    /// Removes the traces so far.
    pub(crate) fn reset_traces(&self) {
        if let Some(recorder) = &self.state.recorder {
            recorder.reset();
        }
    }

    /// Waits until the script makes the server exit. Returns the exit code that a process would have.
    pub async fn wait_exit(&self) -> u8 {
        self.state.lifetime.shutdown.kill.cancelled().await;
        self.state.lifetime.exit_code().unwrap_or_default()
    }

    /// Ends the server: it accepts nothing new, answers in progress may finish within `grace`, then every connection is
    /// closed. Nothing is left running.
    pub async fn stop(self, grace: Duration) {
        self.state.lifetime.shutdown.end(grace).await;
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.state.lifetime.shutdown.stop.cancel();
        self.state.lifetime.shutdown.kill.cancel();
        if self.verify_on_drop && !std::thread::panicking() {
            self.assert_verified();
        }
    }
}
