//! Serving an engine: over a pipe with [`serve_pipe`], over all network transports on one port with [`MockServer`].
//!
//! | endpoint | transport |
//! | --- | --- |
//! | `/mcp` | streamable HTTP, both eras |
//! | `/sse`, `/messages` | HTTP+SSE of 2024-11-05 |
//! | `/ws` | WebSocket, both eras |

mod afflict;
mod batch;
mod connection;
mod faulty;
mod http;
mod in_session;
mod life;
mod lone;
mod pipe;
mod play;
mod session;
mod sse;
mod stream_log;
mod streamable;
mod ws;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use ::http::Method;
pub use pipe::{Ended, Pipes, serve_pipe};
use tokio::{io::DuplexStream, net::TcpListener};

use self::{afflict::Overtaking, life::Life, session::Sessions, sse::Streams};
use super::engine::Engine;
use crate::transport::{
    Transport,
    server::{HostPolicy, Line, Request, accept},
};

/// How many bytes a pipe holds that were not read yet.
const PIPE: usize = 64 << 10;
/// How long answers may take after a client has closed its end of a pipe.
const PIPE_GRACE: Duration = Duration::from_secs(5);

/// Where and for whom to listen.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Port 0 takes a free port.
    pub address: SocketAddr,
    /// Names besides the address itself under which the server may be addressed.
    pub allowed_hosts: Vec<String>,
}

impl Default for Listen {
    /// A free port on 127.0.0.1.
    fn default() -> Self {
        Listen { address: ([127, 0, 0, 1], 0).into(), allowed_hosts: Vec::new() }
    }
}

/// A mock that listens on all network transports. Dropping it ends it at once; [`MockServer::stop`] ends it in order.
#[derive(Debug)]
pub struct MockServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    verify_on_drop: bool,
}

/// What every connection of a server shares.
#[derive(Debug)]
struct Shared {
    engine: Arc<Engine>,
    life: Life,
    hosts: HostPolicy,
    sessions: Sessions,
    streams: Streams,
    overtaking: Overtaking,
}

impl MockServer {
    /// Binds and starts to serve.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start(engine: Arc<Engine>, listen: Listen) -> io::Result<MockServer> {
        let listener = TcpListener::bind(listen.address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            engine,
            life: Life::begin(Instant::now()),
            hosts: HostPolicy::new(address.ip(), listen.allowed_hosts),
            sessions: Sessions::default(),
            streams: Streams::default(),
            overtaking: Overtaking::default(),
        });
        let service = {
            let shared = shared.clone();
            move |mut request: Request, line: &Line| {
                // What stays open may outlast the script that is served now.
                if request.method() != Method::POST || shared.engine.has_faults() {
                    request.extensions_mut().insert(line.clone());
                }
                let shared = shared.clone();
                async move {
                    // What is dead answers nobody, also before the last connection is gone.
                    if shared.life.died().is_some() {
                        std::future::pending::<()>().await;
                    }
                    http::handle(shared, request).await
                }
            }
        };
        shared.life.shutdown.tasks.spawn(accept(listener, shared.life.shutdown.clone(), service));
        Ok(MockServer { address, shared, verify_on_drop: false })
    }

    /// Whether to panic when the server is dropped and something that is expected did not come, unless the thread
    /// panics already. A server does not, unless it was [built](MockServer::builder).
    pub fn verify_on_drop(&mut self, verify: bool) {
        self.verify_on_drop = verify;
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    pub fn started(&self) -> Instant {
        self.shared.life.started
    }

    /// The URL of a network transport; `None` for the others.
    pub fn url(&self, transport: Transport) -> Option<String> {
        match transport {
            Transport::Http => Some(format!("http://{}/mcp", self.address)),
            Transport::Sse => Some(format!("http://{}/sse", self.address)),
            Transport::Ws => Some(format!("ws://{}/ws", self.address)),
            Transport::Stdio | Transport::Memory => None,
        }
    }

    /// The client's end of a pipe with the framing of stdio, to the same server.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(far);
        let (pipes, life) = (self.pipes(), self.shared.life.clone());
        self.shared.life.shutdown.tasks.spawn(async move {
            let stop = life.shutdown.stop.clone();
            let ended = pipes.serve(Transport::Memory, reader, writer, stop, PIPE_GRACE).await;
            if let Ok(Ended::Died(code)) = ended {
                life.die(code);
            }
        });
        near
    }

    /// Serves more clients of the same server, over pipes.
    pub fn pipes(&self) -> Pipes {
        Pipes::of(self.shared.engine.clone(), self.shared.life.clone())
    }

    /// Waits until the script lets the server die, and gives the exit code that a process would have.
    pub async fn died(&self) -> u8 {
        self.shared.life.shutdown.kill.cancelled().await;
        self.shared.life.died().unwrap_or_default()
    }

    /// Ends the server: nothing new is accepted, answers that are under way may finish within `grace`, then every
    /// connection is closed. Nothing is left running.
    pub async fn stop(self, grace: Duration) {
        self.shared.life.shutdown.end(grace).await;
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.shared.life.shutdown.stop.cancel();
        self.shared.life.shutdown.kill.cancel();
        if self.verify_on_drop && !std::thread::panicking() {
            self.assert_verified();
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fault_tests;
