//! A relay for stdio.

use std::{process::ExitStatus, time::Duration};

use bytes::Bytes;
use rehearse_client::{ClientRecorder, ConnectError, EventSink, ServerParams, StderrSink, Wire};
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::{Direction, EventKind};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

use crate::KEPT_EVENTS;

/// How long the client may take to read the last messages.
const LAST_MESSAGES: Duration = Duration::from_secs(5);

/// Relays the lines of a client to a process, and back, until either side ends or
/// [`shutdown`](ServerParams::shutdown) is cancelled. Returns how the process has ended.
///
/// # Errors
/// The process cannot be started.
pub async fn relay_lines(
    params: &ServerParams,
    write: EventSink,
    stderr: StderrSink,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<Option<ExitStatus>, ConnectError> {
    let recorder = ClientRecorder::with_limit(KEPT_EVENTS);
    let (lines, queue) = mpsc::unbounded_channel();
    recorder.set_sink(Box::new(move |event| {
        write(event);
        let line = match &event.kind {
            EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => Some(frame.bytes.clone()),
            EventKind::Closed(_) => None,
            _ => return,
        };
        let _ = lines.send(line);
    }));
    let wire = Wire::open(params, Some(stderr), recorder.clone()).await?;
    let writing = tokio::spawn(write_lines(queue, output));
    tokio::select! {
        () = send_lines(&wire, input) => {}
        () = ended(&recorder) => {}
        () = params.shutdown.cancelled() => {}
    }
    let status = wire.close().await;
    let _ = tokio::time::timeout(LAST_MESSAGES, writing).await;
    Ok(status)
}

/// Sends the lines of the client to the server, until it closes its end.
async fn send_lines(wire: &Wire, input: impl AsyncRead + Unpin) {
    let mut input = LineReader::new(input);
    while let Ok(Some(line)) = input.next().await {
        // A line that is too long for a trace is too long for the relay.
        let Ok(line) = line else { continue };
        if wire.send(None, line).await.is_err() {
            return;
        }
    }
}

/// Writes what the server sends, until it sends no more.
async fn write_lines(mut queue: mpsc::UnboundedReceiver<Option<Bytes>>, output: impl AsyncWrite + Unpin) {
    let mut output = LineWriter::new(output);
    while let Some(Some(line)) = queue.recv().await {
        if output.write(&line).await.is_err() {
            return;
        }
    }
}

/// Waits for the end of a connection.
async fn ended(recorder: &ClientRecorder) {
    while recorder.has_more(recorder.end()).await {}
}
