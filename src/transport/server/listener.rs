//! Accepting HTTP connections, and ending them in order.

use std::{convert::Infallible, future::Future, pin::pin, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Request, Response};

const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_CONNECTIONS: usize = 4096;

/// How a server ends: first `stop` (accept nothing new, finish what is under way), then `kill` (drop everything).
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    pub stop: CancellationToken,
    pub kill: CancellationToken,
    /// Every task that the server has started.
    pub tasks: TaskTracker,
}

impl Shutdown {
    /// Ends the server and waits until nothing of it is left; what is under way may take as long as `grace`.
    pub async fn end(&self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            self.kill.cancel();
            self.tasks.wait().await;
        }
    }
}

/// Accepts connections until told to stop, and answers their requests with `service`.
pub async fn accept<S, F>(listener: TcpListener, shutdown: Shutdown, service: S)
where
    S: Fn(Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    static CONNECTIONS: Semaphore = Semaphore::const_new(MAX_CONNECTIONS);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.stop.cancelled() => return,
            () = shutdown.kill.cancelled() => return,
        };
        match (accepted, CONNECTIONS.try_acquire()) {
            (Ok((stream, _)), Ok(permit)) => {
                let connection = serve(stream, shutdown.clone(), service.clone());
                shutdown.tasks.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            (Ok(_), Err(_)) => {}
            // Out of file descriptors, most likely: let the connections that hold them go on.
            (Err(_), _) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve<S, F>(stream: TcpStream, shutdown: Shutdown, service: S)
where
    S: Fn(Request) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let response = service(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    tokio::select! {
        _ = connection.as_mut() => return,
        () = shutdown.kill.cancelled() => return,
        () = shutdown.stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = shutdown.kill.cancelled() => {}
    }
}
