//! Unix: without a thread if they can be polled.

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
    process::ChildStdin,
};

/// Stdin. A polled pipe or socket is non-blocking for every process that shares it: call [`Input::restore`] at the end.
#[derive(Debug)]
pub enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    /// A terminal, a file or a device, read by a thread that may never return.
    Thread(Stdin),
}

/// Stdout, as [`Input`].
#[derive(Debug)]
pub struct Output {
    stream: OutputStream,
    /// Called with each error.
    failed: fn(&io::Error),
}

#[derive(Debug)]
enum OutputStream {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Thread(Stdout),
}

impl Input {
    /// Must be called within a tokio runtime.
    pub fn open() -> Input {
        let pipe = || pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?);
        match (pipe(), socket(io::stdin())) {
            (Ok(pipe), _) => Input::Pipe(pipe),
            (_, Some(socket)) => Input::Socket(socket),
            _ => Input::Thread(tokio::io::stdin()),
        }
    }

    /// Makes stdin blocking again for other processes.
    pub fn restore(self) {
        // An error has no effect on this process.
        let _ = match self {
            Input::Pipe(pipe) => pipe.into_blocking_fd().map(drop),
            Input::Socket(socket) => set_blocking(socket),
            Input::Thread(_) => Ok(()),
        };
    }
}

impl Output {
    /// Must be called within a tokio runtime. `failed` is called with each error.
    pub fn open(failed: fn(&io::Error)) -> Output {
        let pipe = || pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?);
        let stream = match (pipe(), socket(io::stdout())) {
            (Ok(pipe), _) => OutputStream::Pipe(pipe),
            (_, Some(socket)) => OutputStream::Socket(socket),
            _ => OutputStream::Thread(tokio::io::stdout()),
        };
        Output { stream, failed }
    }

    /// As [`Input::restore`].
    pub fn restore(self) {
        let _ = match self.stream {
            OutputStream::Pipe(pipe) => pipe.into_blocking_fd().map(drop),
            OutputStream::Socket(socket) => set_blocking(socket),
            OutputStream::Thread(_) => Ok(()),
        };
    }
}

/// Resolves when the reader of stdout is gone, such as a killed client; never if that cannot be detected.
pub async fn stdout_closed() {
    let pipe = || pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?);
    if let Ok(pipe) = pipe()
        && pipe.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// How many bytes a process has not read yet.
pub fn unread(stdin: &ChildStdin) -> u64 {
    rustix::io::ioctl_fionread(stdin).unwrap_or_default()
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
        let output = self.get_mut();
        let done = match &mut output.stream {
            OutputStream::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            OutputStream::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            OutputStream::Thread(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        };
        if let Poll::Ready(Err(error)) = &done {
            (output.failed)(error);
        }
        done
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let output = self.get_mut();
        let done = match &mut output.stream {
            OutputStream::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            OutputStream::Socket(socket) => Pin::new(socket).poll_flush(cx),
            OutputStream::Thread(stdout) => Pin::new(stdout).poll_flush(cx),
        };
        if let Poll::Ready(Err(error)) = &done {
            (output.failed)(error);
        }
        done
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
