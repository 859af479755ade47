//! A handle with which a server closes the connection of a request.

use std::{
    any::Any,
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

/// How the server ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// Closes it: the client reads the end of the stream.
    Close,
    /// Resets it: the client reads an error.
    Reset,
    /// Keeps it open: when everything has been sent, the caller of [`ConnectionHandle::closed`] ends the server.
    Hold,
}

/// Ends a connection after the pending bytes are sent.
///
/// It is an extension of each request that can end its connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionHandle(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// 0 while the connection is open.
    requested: AtomicU8,
    closed: CancellationToken,
    data: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The stream of a connection with a [`ConnectionHandle`].
#[derive(Debug)]
pub(super) struct ConnectionStream {
    stream: TcpStream,
    connection: ConnectionHandle,
}

impl ConnectionHandle {
    /// Ends the connection when everything has been sent. The caller must not end the response.
    pub fn disconnect(&self, how: Disconnect) {
        let requested = match how {
            Disconnect::Close => 1,
            Disconnect::Reset => 2,
            Disconnect::Hold => 3,
        };
        self.0.requested.store(requested, Ordering::Release);
    }

    /// Like [`ConnectionHandle::disconnect`], but never returns: the task ends with the connection.
    pub async fn disconnect_and_wait(&self, how: Disconnect) -> ! {
        self.disconnect(how);
        // The connection may have been flushed already in this round; it needs another one.
        let mut woken = false;
        poll_fn(|context| {
            if !std::mem::replace(&mut woken, true) {
                context.waker().wake_by_ref();
            }
            Poll::<std::convert::Infallible>::Pending
        })
        .await;
        std::future::pending().await
    }

    /// Waits until everything has been sent and the connection is closed or held, or the client has closed it.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Whether the server has ended the connection.
    pub fn is_disconnected(&self) -> bool {
        self.wanted().is_some()
    }

    /// The data that the service keeps for the connection, created on first use; `None` if it has another type.
    pub fn data<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.data.get_or_init(|| Box::new(make())).downcast_ref()
    }

    fn wanted(&self) -> Option<Disconnect> {
        match self.0.requested.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Disconnect::Close),
            2 => Some(Disconnect::Reset),
            _ => Some(Disconnect::Hold),
        }
    }
}

impl ConnectionStream {
    pub(super) fn new(stream: TcpStream, connection: ConnectionHandle) -> Self {
        ConnectionStream { stream, connection }
    }
}

impl Drop for ConnectionStream {
    fn drop(&mut self) {
        self.connection.0.closed.cancel();
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// A writer flushes when it has written everything: here the connection may end.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.connection.wanted() {
            None => return Pin::new(&mut self.stream).poll_flush(cx),
            Some(Disconnect::Close) => {}
            // Where this cannot be set, the connection is closed in order.
            Some(Disconnect::Reset) => drop(self.stream.set_zero_linger()),
            Some(Disconnect::Hold) => {
                self.connection.0.closed.cancel();
                return Poll::Pending;
            }
        }
        Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
