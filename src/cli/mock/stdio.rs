//! Async stdin and stdout, without a thread if they can be polled.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileTypeExt, net::UnixStream as StdUnixStream},
    },
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Stdin, Stdout},
    net::{UnixStream, unix::pipe},
};

use crate::cli::output;

/// Stdin. A polled pipe or socket is non-blocking for every process that shares it: call [`Input::restore`] at the end.
#[derive(Debug)]
pub(in crate::cli) enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    /// A terminal, a file or a device, read by a thread that may never return.
    Thread(Stdin),
}

/// Stdout, as [`Input`].
#[derive(Debug)]
pub(in crate::cli) enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Thread(Stdout),
}

impl Input {
    /// Must be called within a tokio runtime.
    pub(in crate::cli) fn open() -> Input {
        let pipe = || pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?);
        match (pipe(), socket(io::stdin())) {
            (Ok(pipe), _) => Input::Pipe(pipe),
            (_, Some(socket)) => Input::Socket(socket),
            _ => Input::Thread(tokio::io::stdin()),
        }
    }

    /// Makes stdin blocking again for other processes.
    pub(in crate::cli) fn restore(self) {
        // An error has no effect on this process.
        let _ = match self {
            Input::Pipe(pipe) => pipe.into_blocking_fd().map(drop),
            Input::Socket(socket) => set_blocking(socket),
            Input::Thread(_) => Ok(()),
        };
    }
}

impl Output {
    /// Must be called within a tokio runtime.
    pub(in crate::cli) fn open() -> Output {
        let pipe = || pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?);
        match (pipe(), socket(io::stdout())) {
            (Ok(pipe), _) => Output::Pipe(pipe),
            (_, Some(socket)) => Output::Socket(socket),
            _ => Output::Thread(tokio::io::stdout()),
        }
    }

    /// As [`Input::restore`].
    pub(in crate::cli) fn restore(self) {
        let _ = match self {
            Output::Pipe(pipe) => pipe.into_blocking_fd().map(drop),
            Output::Socket(socket) => set_blocking(socket),
            Output::Thread(_) => Ok(()),
        };
    }
}

/// Resolves when the reader of stdout is gone, such as a killed client; never if that cannot be detected.
pub(in crate::cli) async fn stdout_closed() {
    let pipe = || pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?);
    if let Ok(pipe) = pipe()
        && pipe.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// The descriptor as a socket. Node uses sockets as the pipes of its child processes.
fn socket(stream: impl AsFd) -> Option<UnixStream> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    if !file.metadata().ok()?.file_type().is_socket() {
        return None;
    }
    let socket = StdUnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

fn set_blocking(socket: UnixStream) -> io::Result<()> {
    socket.into_std()?.set_nonblocking(false)
}

/// The command fails at its end.
fn remember_error<T>(done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
    if let Poll::Ready(Err(error)) = &done {
        output::remember(error);
    }
    done
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Input::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Input::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Input::Thread(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = match self.get_mut() {
            Output::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Output::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Output::Thread(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        };
        remember_error(written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match self.get_mut() {
            Output::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Output::Socket(socket) => Pin::new(socket).poll_flush(cx),
            Output::Thread(stdout) => Pin::new(stdout).poll_flush(cx),
        };
        remember_error(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
