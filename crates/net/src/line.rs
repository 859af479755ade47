//! A connection that can be broken off from within.

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

/// How a connection is broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// In order: the other side reads an end.
    Close,
    /// With a reset: the other side reads an error.
    Reset,
    /// Not yet: when everything has been sent, the caller that waits for [`Line::broken`] ends the server.
    Hold,
}

/// By this a connection can be broken off. What has been handed over to be sent before, is sent before.
///
/// It is an extension of a request whose answer may need it.
#[derive(Clone, Debug, Default)]
pub struct Line(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// 0 while it goes on.
    breaks: AtomicU8,
    broken: CancellationToken,
    data: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The bytes of a connection with a [`Line`].
#[derive(Debug)]
pub(super) struct Breakable {
    stream: TcpStream,
    line: Line,
}

impl Line {
    /// Breaks off when everything has been sent. Who answers need not, and must not, end the answer.
    pub fn break_off(&self, how: Break) {
        let breaks = match how {
            Break::Close => 1,
            Break::Reset => 2,
            Break::Hold => 3,
        };
        self.0.breaks.store(breaks, Ordering::Release);
    }

    /// Like [`Line::break_off`], and waits forever: the task ends with the connection.
    pub async fn break_here(&self, how: Break) -> ! {
        self.break_off(how);
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

    /// Resolves when all has been sent and the connection is broken off, or gone.
    pub async fn broken(&self) {
        self.0.broken.cancelled().await;
    }

    /// Whether it was broken off from within.
    pub fn is_broken_off(&self) -> bool {
        self.wanted().is_some()
    }

    /// What the service keeps for the connection, which is made on first use; `None` if it is of another type.
    pub fn data<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.data.get_or_init(|| Box::new(make())).downcast_ref()
    }

    fn wanted(&self) -> Option<Break> {
        match self.0.breaks.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Break::Close),
            2 => Some(Break::Reset),
            _ => Some(Break::Hold),
        }
    }
}

impl Breakable {
    pub(super) fn new(stream: TcpStream, line: Line) -> Self {
        Breakable { stream, line }
    }
}

impl Drop for Breakable {
    fn drop(&mut self) {
        self.line.0.broken.cancel();
    }
}

impl AsyncRead for Breakable {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Breakable {
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

    /// A writer flushes when it has written everything: here the connection may break.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.line.wanted() {
            None => return Pin::new(&mut self.stream).poll_flush(cx),
            Some(Break::Close) => {}
            // Where this cannot be set, the connection is closed in order.
            Some(Break::Reset) => drop(self.stream.set_zero_linger()),
            Some(Break::Hold) => {
                self.line.0.broken.cancel();
                return Poll::Pending;
            }
        }
        Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
