//! Accepts HTTP connections, and shuts them down.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{ConnectionHandle, Request, Response, connection::ConnectionStream};

const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of open connections, unless a server says otherwise.
pub const MAX_CONNECTIONS: usize = 4096;
/// How many connections may read their refusal at a time, and how long.
const MAX_REFUSALS: usize = 64;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);

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

/// The open connections of a listener, and how many there may be.
pub struct ConnectionLimit {
    limit: usize,
    refused: Box<dyn Fn() + Send + Sync>,
}

impl ConnectionLimit {
    /// At most `limit` connections; `refused` is called for each further one.
    pub fn new(limit: usize, refused: impl Fn() + Send + Sync + 'static) -> ConnectionLimit {
        ConnectionLimit { limit, refused: Box::new(refused) }
    }
}

impl Default for ConnectionLimit {
    fn default() -> Self {
        ConnectionLimit::new(MAX_CONNECTIONS, || {})
    }
}

/// Accepts connections until `stop` is cancelled, and answers their requests with `service`, which gets the handle of
/// the connection as well. A connection beyond the limit gets status 503 and is closed.
pub async fn accept<S, F>(listener: TcpListener, limit: ConnectionLimit, shutdown: Shutdown, service: S)
where
    S: Fn(Request, &ConnectionHandle) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limit.limit));
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.kill.cancelled() => return,
            () = shutdown.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match (accepted, places.clone().try_acquire_owned()) {
            (Ok((stream, _)), Ok(place)) => {
                let connection = serve(stream, shutdown.clone(), service.clone());
                shutdown.tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            (Ok((stream, _)), Err(_)) => {
                (limit.refused)();
                // Without a place the connection is closed at once.
                if let Ok(place) = refusals.clone().try_acquire_owned() {
                    let kill = shutdown.kill.clone();
                    shutdown.tasks.spawn(async move {
                        tokio::select! {
                            _ = tokio::time::timeout(REFUSAL_TIMEOUT, refuse(stream)) => {}
                            () = kill.cancelled() => {}
                        }
                        drop(place);
                    });
                }
            }
            // Probably out of file descriptors: open connections may continue.
            (Err(_), _) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers with status 503. Reads what the client sends until it closes its end: unread data would reset the
/// connection, and the response could be lost.
async fn refuse(mut stream: TcpStream) {
    const HEAD: &str = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\n";
    const BODY: &str = "too many connections are open\n";
    let response = format!("{HEAD}Content-Length: {}\r\n\r\n{BODY}", BODY.len());
    let mut unread = [0; 1024];
    // The client may be gone.
    if stream.write_all(response.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        while stream.read(&mut unread).await.is_ok_and(|count| count > 0) {}
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

impl fmt::Debug for ConnectionLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionLimit").field(&self.limit).finish()
    }
}

/// An address that a client can connect to.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Body;
    use http::StatusCode;

    async fn get(stream: &mut TcpStream) -> Vec<u8> {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("writes");
        let mut answer = vec![0; 64];
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut answer)).await.expect("in time");
        answer.truncate(read.expect("reads"));
        answer
    }

    #[tokio::test]
    async fn a_connection_too_many_is_refused_until_another_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, shutdown) = (listener.local_addr().expect("bound"), Shutdown::default());
        let service = |_, _: &ConnectionHandle| async {
            let mut response = Response::new(Body::Whole(None));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        };
        let (sender, refused) = std::sync::mpsc::channel();
        let limit = ConnectionLimit::new(1, move || {
            let _ = sender.send(());
        });
        let accepting = tokio::spawn(accept(listener, limit, shutdown.clone(), service));
        let mut first = TcpStream::connect(address).await.expect("connects");
        assert!(get(&mut first).await.starts_with(b"HTTP/1.1 204"));
        let mut second = TcpStream::connect(address).await.expect("connects");
        assert!(get(&mut second).await.starts_with(b"HTTP/1.1 503"));
        assert_eq!(refused.try_iter().count(), 1);
        assert!(get(&mut first).await.starts_with(b"HTTP/1.1 204"), "the first is still served");
        drop(first);
        let served = async {
            while !get(&mut TcpStream::connect(address).await.expect("connects")).await.starts_with(b"HTTP/1.1 204") {}
        };
        tokio::time::timeout(Duration::from_secs(60), served).await.expect("there is room again");
        shutdown.end(Duration::ZERO).await;
        accepting.await.expect("no panic");
    }
}
