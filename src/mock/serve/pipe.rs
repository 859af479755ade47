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
    wire::{RpcError, message},
};

/// How long answers that are under way may still take after the client has closed its end.
const GRACE: Duration = Duration::from_secs(10);

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

/// Serves one client until it closes its end or `stop` is cancelled.
///
/// # Errors
/// The pipe cannot be read. A client that no longer reads is an end, not an error.
pub async fn serve_pipe<R, W>(
    engine: Arc<Engine>,
    transport: Transport,
    reader: R,
    writer: W,
    stop: CancellationToken,
) -> io::Result<Ended>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (connection, mut frames) = Connection::open(engine, transport, Instant::now());
    let mut writer = LineWriter::new(writer);
    let write = async {
        while let Some(frame) = frames.recv().await {
            if writer.write(&frame).await.is_err() {
                return;
            }
        }
    };
    let read = async {
        let mut reader = LineReader::new(reader);
        let ended = loop {
            let line = tokio::select! {
                line = reader.next() => line?,
                () = stop.cancelled() => break Ended::Stopped,
                () = connection.closed() => break Ended::Died(connection.died().unwrap_or_default()),
            };
            match line {
                Some(Ok(frame)) => tokio::select! {
                    () = connection.receive(&frame) => {}
                    () = stop.cancelled() => break Ended::Stopped,
                },
                Some(Err(too_long)) => {
                    let error = RpcError::new(message::INVALID_REQUEST, too_long.to_string());
                    connection.send(message::error(None, &error)).await;
                }
                None => {
                    tokio::select! {
                        () = connection.finish() => {}
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(GRACE) => {}
                    }
                    break connection.died().map_or(Ended::Closed, Ended::Died);
                }
            }
        };
        connection.cancel().await;
        drop(connection);
        Ok(ended)
    };
    let mut read = std::pin::pin!(read);
    let mut write = std::pin::pin!(write);
    tokio::select! {
        ended = read.as_mut() => {
            if !matches!(ended, Ok(Ended::Died(_))) {
                write.await;
            }
            ended
        }
        () = write.as_mut() => Ok(Ended::Closed),
    }
}
