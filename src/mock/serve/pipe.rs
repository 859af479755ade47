//! Serving over a byte stream with the framing of stdio (2026-07-28, stdio).

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use crate::{
    mock::engine::Engine,
    transport::{LineReader, LineWriter, Transport},
};

/// Why serving over a pipe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed its end, and everything it asked for was answered.
    Closed,
    /// `stop` was cancelled.
    Stopped,
    /// The script let the server die, with this exit code.
    Died(u8),
}

/// Serves one client until it closes its end or `stop` is cancelled. Answers that are under way then may still take as
/// long as `grace`.
///
/// # Errors
/// The pipe cannot be read. A client that no longer reads is an end, not an error.
pub async fn serve_pipe<R, W>(
    engine: Arc<Engine>,
    transport: Transport,
    reader: R,
    writer: W,
    stop: CancellationToken,
    grace: Duration,
) -> io::Result<Ended>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    serve_pipe_since(Instant::now(), engine, transport, reader, writer, stop, grace).await
}

/// As [`serve_pipe`], for a mock that was `started` before: it serves others as well.
///
/// # Errors
/// As [`serve_pipe`].
pub async fn serve_pipe_since<R, W>(
    started: Instant,
    engine: Arc<Engine>,
    transport: Transport,
    reader: R,
    writer: W,
    stop: CancellationToken,
    grace: Duration,
) -> io::Result<Ended>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (connection, mut frames) = Connection::open(engine, transport, started, None);
    let mut writer = LineWriter::new(writer);
    let write = async {
        while let Some(frame) = frames.recv().await {
            if writer.write(&frame).await.is_err() {
                return;
            }
        }
    };
    let serve = async {
        let ended = read(&connection, reader, &stop).await;
        if let Ok(Ended::Closed | Ended::Stopped) = ended {
            let _ = tokio::time::timeout(grace, connection.finish()).await;
        }
        connection.cancel().await;
        let died = connection.died();
        drop(connection);
        ended.map(|ended| died.map_or(ended, Ended::Died))
    };
    let (mut serve, mut write) = (std::pin::pin!(serve), std::pin::pin!(write));
    tokio::select! {
        ended = serve.as_mut() => {
            if !matches!(ended, Ok(Ended::Died(_))) {
                let _ = tokio::time::timeout(grace, write).await;
            }
            ended
        }
        () = write.as_mut() => Ok(Ended::Closed),
    }
}

async fn read<R: AsyncRead + Unpin>(connection: &Connection, reader: R, stop: &CancellationToken) -> io::Result<Ended> {
    let mut reader = LineReader::new(reader);
    loop {
        let line = tokio::select! {
            line = reader.next() => line?,
            () = stop.cancelled() => return Ok(Ended::Stopped),
            () = connection.closed() => return Ok(Ended::Died(connection.died().unwrap_or_default())),
        };
        let received = async {
            match line {
                Some(Ok(frame)) => connection.receive(&frame).await,
                Some(Err(too_long)) => connection.refuse(None, &too_long.to_string()).await,
                None => return true,
            }
            false
        };
        tokio::select! {
            at_end = received => if at_end { return Ok(Ended::Closed) },
            () = stop.cancelled() => return Ok(Ended::Stopped),
        }
    }
}
