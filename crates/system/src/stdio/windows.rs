//! Windows: threads, as pipes that another process has opened cannot be polled.

use std::{
    future::pending,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout},
    process::ChildStdin,
};

/// Stdin.
#[derive(Debug)]
pub struct Input(Stdin);

/// Stdout.
#[derive(Debug)]
pub struct Output {
    stream: Stdout,
    failed: fn(&io::Error),
}

impl Input {
    /// Must be called within a tokio runtime.
    pub fn open() -> Input {
        Input(tokio::io::stdin())
    }

    /// Nothing was changed for other processes.
    pub fn restore(self) {}
}

impl Output {
    /// Must be called within a tokio runtime. `failed` is called with each error.
    pub fn open(failed: fn(&io::Error)) -> Output {
        Output { stream: tokio::io::stdout(), failed }
    }

    /// As [`Input::restore`].
    pub fn restore(self) {}
}

/// Never resolves: that the reader is gone shows at the next write.
pub async fn stdout_closed() {
    pending().await
}

/// How many bytes a process has not read yet; the system does not say it.
pub fn unread(_: &ChildStdin) -> u64 {
    0
}

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Err(error)) = &done {
            (self.failed)(error);
        }
        done
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        if let Poll::Ready(Err(error)) = &done {
            (self.failed)(error);
        }
        done
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
