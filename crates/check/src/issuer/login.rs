//! Where the browser of a user is redirected to.

use std::{io, time::Duration};

use bytes::Bytes;
use rehearse_net::{Body, ConnectionHandle, ConnectionLimit, Request, Response, Shutdown, accept};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle, time::timeout};

const PATH: &str = "/callback";
const PAGE: &[u8] = b"The check goes on. You can close this window.";
/// How long the browser may take to read the page.
const GOODBYE: Duration = Duration::from_secs(2);

/// The redirect URI of the client, and what comes there.
pub(super) struct Callback {
    pub(super) uri: String,
    responses: mpsc::Receiver<String>,
    shutdown: Shutdown,
    accepting: JoinHandle<()>,
}

impl Callback {
    /// Listens on this port of 127.0.0.1; 0 is any.
    ///
    /// # Errors
    /// The port is in use.
    pub(super) async fn listen(port: u16) -> io::Result<Callback> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let uri = format!("http://{}{PATH}", listener.local_addr()?);
        let (sender, responses) = mpsc::channel(1);
        let (shutdown, base) = (Shutdown::default(), uri.clone());
        let service = move |asked: Request, _: &ConnectionHandle| {
            let is_response = asked.uri().path() == PATH;
            let query = asked.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
            if is_response {
                // Only one is waited for.
                let _ = sender.try_send(format!("{base}{query}"));
            }
            async move {
                let mut response = Response::new(Body::Whole(Some(Bytes::from_static(PAGE))));
                if !is_response {
                    *response.status_mut() = http::StatusCode::NOT_FOUND;
                }
                response
            }
        };
        let accepting = tokio::spawn(accept(listener, ConnectionLimit::default(), shutdown.clone(), service));
        Ok(Callback { uri, responses, shutdown, accepting })
    }

    /// The URL of the next authorization response; `None` if none comes in time.
    pub(super) async fn response(&mut self, limit: Duration) -> Option<String> {
        timeout(limit, self.responses.recv()).await.ok().flatten()
    }

    /// Stops to listen.
    pub(super) async fn close(self) {
        self.shutdown.end(GOODBYE).await;
        self.accepting.abort();
    }
}
