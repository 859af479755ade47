//! Accepts HTTP connections, and shuts them down.

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{ConnectionHandle, Request, Response, connection::ConnectionStream};

const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of open connections; further ones wait.
const MAX_CONNECTIONS: usize = 4096;

/// The shutdown of a server: first `stop` (accept nothing new, finish what is in progress), then `kill` (drop
/// everything).
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// Accept nothing new.
    pub stop: CancellationToken,
    /// Drop everything.
    pub kill: CancellationToken,
    /// Every task that the server has started.
    pub tasks: TaskTracker,
}

impl Shutdown {
    /// Ends the server and waits until all its tasks have ended. Requests in progress may take as long as `grace`.
    pub async fn end(&self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            self.kill.cancel();
            self.tasks.wait().await;
        }
    }
}

/// Accepts connections until `stop` is cancelled, and answers their requests with `service`, which gets the handle of
/// the connection as well.
pub async fn accept<S, F>(listener: TcpListener, shutdown: Shutdown, service: S)
where
    S: Fn(Request, &ConnectionHandle) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    accept_few(MAX_CONNECTIONS, listener, shutdown, service).await;
}

async fn accept_few<S, F>(limit: usize, listener: TcpListener, shutdown: Shutdown, service: S)
where
    S: Fn(Request, &ConnectionHandle) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limit));
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            biased;
            () = shutdown.kill.cancelled() => return,
            () = shutdown.stop.cancelled() => return,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = serve(stream, shutdown.clone(), service.clone());
                shutdown.tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            // Probably out of file descriptors: open connections may continue.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve<S, F>(stream: TcpStream, shutdown: Shutdown, service: S)
where
    S: Fn(Request, &ConnectionHandle) -> F + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let handle = ConnectionHandle::default();
    let stream = ConnectionStream::new(stream, handle.clone());
    let service = service_fn(move |request| {
        let response = service(request, &handle);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    // Tokens of its own: every poll takes the lock of a token, which all connections would otherwise share.
    let (stop, kill) = (shutdown.stop.child_token(), shutdown.kill.child_token());
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = kill.cancelled() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = kill.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;
    use crate::Body;

    async fn get(stream: &mut TcpStream) -> Vec<u8> {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("writes");
        let mut answer = vec![0; 64];
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut answer)).await.expect("in time");
        answer.truncate(read.expect("reads"));
        answer
    }

    #[tokio::test]
    async fn a_connection_too_many_waits_until_another_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, shutdown) = (listener.local_addr().expect("bound"), Shutdown::default());
        let service = |_, _: &ConnectionHandle| async {
            let mut response = Response::new(Body::Whole(None));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        };
        let accepting = tokio::spawn(accept_few(1, listener, shutdown.clone(), service));
        let mut first = TcpStream::connect(address).await.expect("connects");
        assert!(get(&mut first).await.starts_with(b"HTTP/1.1 204"));
        let mut second = TcpStream::connect(address).await.expect("connects");
        let answer = get(&mut second);
        let mut answer = pin!(answer);
        assert!(futures_util::poll!(answer.as_mut()).is_pending());
        assert!(get(&mut first).await.starts_with(b"HTTP/1.1 204"), "the first is still served");
        drop(first);
        assert!(answer.await.starts_with(b"HTTP/1.1 204"));
        shutdown.end(Duration::ZERO).await;
        accepting.await.expect("no panic");
    }
}
