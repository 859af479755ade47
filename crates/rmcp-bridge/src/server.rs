//! A server of rmcp in this process.

use std::sync::Arc;

use rehearse_client::Target;
use rehearse_net::pipe;
use rmcp::{ServerHandler, service::serve_server_with_ct};
use tokio::{
    io::DuplexStream,
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

/// A server of rmcp in this process. Dropping it closes its connections at once, and cancels the requests that its handlers
/// still work on; [`RmcpServer::stop`] also waits until that is done.
#[derive(Debug)]
pub struct RmcpServer {
    address: pipe::Address,
    stop: CancellationToken,
    accepting: JoinHandle<()>,
}

impl RmcpServer {
    /// Starts a server with a handler for each connection. A check and a run of scenarios open many of them; clones of one
    /// handler share their state.
    ///
    /// # Panics
    /// There is no tokio runtime.
    pub fn start<H: ServerHandler>(handler: impl Fn() -> H + Send + Sync + 'static) -> RmcpServer {
        let (address, listener) = pipe::listen();
        let stop = CancellationToken::new();
        let accepting = tokio::spawn(accept(listener, Arc::new(handler), stop.clone()));
        RmcpServer { address, stop, accepting }
    }

    /// Where a [`Session`](rehearse_client::Session), a scenario or a check reaches the server, as long as it lives.
    pub fn target(&self) -> Target {
        Target::Memory(self.address.clone())
    }

    /// Closes all connections, and waits until their handlers have answered, at most two seconds.
    pub async fn stop(mut self) {
        self.stop.cancel();
        drop((&mut self.accepting).await);
    }
}

impl Drop for RmcpServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept<H: ServerHandler>(
    mut listener: pipe::Listener,
    handler: Arc<impl Fn() -> H + Send + Sync + 'static>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            Some(pipe) = listener.accept() => drop(connections.spawn(serve(handler.clone(), pipe, stop.child_token()))),
            else => break,
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn serve<H: ServerHandler>(handler: Arc<impl Fn() -> H>, pipe: DuplexStream, stop: CancellationToken) {
    // What was wrong with a handshake is known to the client.
    if let Ok(connection) = serve_server_with_ct(handler(), pipe, stop).await {
        drop(connection.waiting().await);
    }
}
