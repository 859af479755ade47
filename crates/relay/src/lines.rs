//! A relay for stdio.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use rehearse_client::{ClientRecorder, ConnectError, EventSink, ServerParams, StderrSink, Wire};
use rehearse_net::{Backlog, LineReader, LineWriter};
use rehearse_protocol::{Direction, Event, EventKind};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{KEPT_EVENTS, MAX_WAITING};

/// How long the client may take to read the last messages.
const LAST_MESSAGES: Duration = Duration::from_secs(5);

/// Relays the lines of a client to a process, and back, until either side ends or
/// [`shutdown`](ServerParams::shutdown) is cancelled. Returns how the process has ended.
///
/// # Errors
/// The process cannot be started.
pub async fn relay_lines(
    params: &ServerParams,
    write: Box<dyn EventSink>,
    stderr: StderrSink,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<Option<ExitStatus>, ConnectError> {
    let recorder = ClientRecorder::with_limit(KEPT_EVENTS);
    let (lines, queue) = mpsc::unbounded_channel();
    let (write, backlog) = (Arc::<dyn EventSink>::from(write), Arc::new(Backlog::new(MAX_WAITING)));
    let shutdown = params.shutdown.clone();
    recorder.set_sink(Box::new(LineSink { write: write.clone(), lines, backlog: backlog.clone(), shutdown }));
    let wire = Wire::open(params, Some(stderr), recorder.clone()).await?;
    let writing = tokio::spawn(write_lines(queue, backlog, output));
    tokio::select! {
        () = send_lines(&wire, &*write, input) => {}
        () = ended(&recorder) => {}
        () = params.shutdown.cancelled() => {}
    }
    let status = wire.close().await;
    let last = async { tokio::time::timeout(LAST_MESSAGES, writing).await };
    tokio::select! {
        _ = last => {}
        () = params.shutdown.cancelled() => {}
    }
    Ok(status)
}

/// Writes each event, and passes on the lines of the server.
struct LineSink {
    write: Arc<dyn EventSink>,
    lines: mpsc::UnboundedSender<Option<Bytes>>,
    backlog: Arc<Backlog>,
    shutdown: CancellationToken,
}

impl EventSink for LineSink {
    fn take(&self, event: &Event) {
        self.write.take(event);
        let line = match &event.kind {
            EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => Some(frame.bytes.clone()),
            EventKind::Closed(_) => None,
            _ => return,
        };
        self.backlog.add(line.as_ref().map_or(0, Bytes::len));
        let _ = self.lines.send(line);
    }

    fn room(&self, exchange: Option<u32>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let room = async {
                self.write.room(exchange).await;
                self.backlog.room().await;
            };
            // At the end, what is on its way is read.
            tokio::select! {
                () = room => {}
                () = self.shutdown.cancelled() => {}
            }
        })
    }
}

/// Sends the lines of the client to the server, until it closes its end.
async fn send_lines(wire: &Wire, write: &dyn EventSink, input: impl AsyncRead + Unpin) {
    let mut input = LineReader::new(input);
    while let Ok(Some(line)) = input.next().await {
        // A line that is too long for a trace is too long for the relay.
        let Ok(line) = line else { continue };
        write.room(None).await;
        if wire.send(None, line).await.is_err() {
            return;
        }
    }
}

/// Writes what the server sends, until it sends no more. What a client does not read any more is only recorded.
async fn write_lines(
    mut queue: mpsc::UnboundedReceiver<Option<Bytes>>,
    backlog: Arc<Backlog>,
    output: impl AsyncWrite + Unpin,
) {
    let (mut output, mut is_open) = (LineWriter::new(output), true);
    while let Some(Some(line)) = queue.recv().await {
        is_open = is_open && output.write(&line).await.is_ok();
        backlog.remove(line.len());
    }
}

/// Waits for the end of a connection.
async fn ended(recorder: &ClientRecorder) {
    while recorder.has_more(recorder.end()).await {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use rehearse_protocol::Frame;

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_slowly_holds_up_the_server_until_the_end() {
        let (lines, queue) = mpsc::unbounded_channel();
        let (backlog, shutdown) = (Arc::new(Backlog::new(MAX_WAITING)), CancellationToken::new());
        let write: Arc<dyn EventSink> = Arc::new(|_: &Event| {});
        let sink = LineSink { write, lines, backlog: backlog.clone(), shutdown: shutdown.clone() };
        let take = |bytes: Bytes| {
            let frame = Frame::new(Direction::ServerToClient, Duration::ZERO, bytes);
            sink.take(&Event { at: Duration::ZERO, exchange: None, kind: EventKind::Frame(frame) });
        };
        take(vec![0; MAX_WAITING].into());
        let mut room = sink.room(None);
        assert!(room.as_mut().now_or_never().is_none());
        // A client that has gone needs none.
        let (gone, _) = tokio::io::duplex(1);
        let writing = tokio::spawn(write_lines(queue, backlog, gone));
        room.await;
        writing.abort();
        let _ = writing.await;
        take(vec![0; MAX_WAITING].into());
        let mut room = sink.room(None);
        assert!(room.as_mut().now_or_never().is_none());
        shutdown.cancel();
        room.await;
    }
}
