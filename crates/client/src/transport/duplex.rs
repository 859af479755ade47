//! Connections on which frames flow freely both ways: where they come from and where they go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::{
    io::{DuplexStream, ReadHalf, WriteHalf},
    process::{ChildStdin, ChildStdout},
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{WireError, events::EventReader, sse_poster::Poster, ws_stream};
use crate::recorder::ClientRecorder;
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::{Closed, Direction, EventKind};
use rehearse_system::stdio::unread;

/// How long the end of the stream to the server may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Where frames come from.
pub(crate) enum Incoming {
    Stdio(LineReader<ChildStdout>),
    Memory(LineReader<ReadHalf<DuplexStream>>),
    Ws(ws_stream::Stream),
    Sse(Box<EventReader>),
}

/// Where frames go. Clones share the connection.
#[derive(Clone)]
pub(crate) enum Outgoing {
    Ordered(OrderedWriter),
    Sse(Poster),
}

/// A writer that writes one frame at a time, in the order of the calls.
#[derive(Clone)]
pub(crate) struct OrderedWriter {
    recorder: ClientRecorder,
    writer: Arc<Mutex<Option<Writer>>>,
    closing: CancellationToken,
    /// The number of bytes so far.
    written: Arc<AtomicU64>,
}

pub(crate) enum Writer {
    Stdio(LineWriter<ChildStdin>),
    Memory(LineWriter<WriteHalf<DuplexStream>>),
    Ws(ws_stream::Sink),
}

impl Incoming {
    /// The number of the HTTP exchange in the trace that the frames come from.
    pub(crate) fn exchange(&self) -> Option<u32> {
        match self {
            Incoming::Sse(reader) => reader.exchange(),
            _ => None,
        }
    }

    /// The next frame, or how the connection ended. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Bytes, Closed> {
        match self {
            Incoming::Stdio(reader) => line(reader.next().await, "the server closed its standard output"),
            Incoming::Memory(reader) => line(reader.next().await, "the server closed the pipe"),
            Incoming::Ws(stream) => ws_stream::next_frame(stream).await,
            Incoming::Sse(reader) => reader.next_message().await,
        }
    }
}

fn line(
    read: std::io::Result<Option<Result<Bytes, rehearse_protocol::TooLong>>>,
    ended: &str,
) -> Result<Bytes, Closed> {
    match read {
        Ok(Some(Ok(line))) => Ok(line),
        Ok(Some(Err(error))) => Err(Closed::by_limit(format!("the server sent {error}"))),
        Ok(None) => Err(Closed::by_server(ended)),
        Err(error) => Err(Closed::by_server(format!("{ended}: {error}")).broken()),
    }
}

impl Outgoing {
    /// Sends one frame; the call, not the first poll, decides its place in the queue. `Ok` has the HTTP status, if the
    /// transport has one.
    pub(crate) fn send(&self, bytes: Bytes) -> impl Future<Output = Result<Option<u16>, WireError>> + Send + use<> {
        let posting = match self {
            Outgoing::Ordered(writer) => Err(writer.send(bytes)),
            Outgoing::Sse(poster) => Ok(poster.clone().post(bytes)),
        };
        async move {
            match posting {
                Ok(posting) => posting.await.map(Some),
                Err(writing) => writing.await.map(|()| None),
            }
        }
    }
}

impl Outgoing {
    /// Writes frames, each as a case of a probe, with one write; with a pause, in two halves of the bytes.
    ///
    /// # Errors
    /// [`WireError::Closed`] also where frames are no lines of a stream.
    pub(crate) async fn write_joined(
        &self,
        frames: Vec<(Arc<str>, Bytes)>,
        pause: Option<Duration>,
    ) -> Result<(), WireError> {
        match self {
            Outgoing::Ordered(writer) => writer.write_joined(frames, pause).await,
            Outgoing::Sse(_) => Err(WireError::Closed),
        }
    }

    /// Whether the process at the other end has read some of what was written to it.
    pub(crate) fn is_read(&self) -> bool {
        let Outgoing::Ordered(ordered) = self else { return true };
        let written = ordered.written.load(Ordering::Relaxed);
        let writer = ordered.writer.try_lock().ok();
        let unread = match writer.as_deref() {
            Some(Some(Writer::Stdio(writer))) => unread(writer.get_ref()),
            _ => 0,
        };
        written > unread
    }

    /// Ends the stream to the server.
    pub(crate) async fn close_input(&self) {
        if let Outgoing::Ordered(writer) = self {
            writer.close().await;
        }
    }
}

impl OrderedWriter {
    pub(crate) fn new(recorder: ClientRecorder, writer: Writer) -> OrderedWriter {
        let (writer, closing) = (Arc::new(Mutex::new(Some(writer))), CancellationToken::new());
        OrderedWriter { recorder, writer, closing, written: Arc::default() }
    }

    fn send(&self, bytes: Bytes) -> impl Future<Output = Result<(), WireError>> + Send + use<> {
        let turn = self.lock_writer();
        let (recorder, closing, written) = (self.recorder.clone(), self.closing.clone(), self.written.clone());
        async move {
            let writing = async {
                let mut writer = turn.await;
                let writer = writer.as_mut().ok_or(WireError::Closed)?;
                recorder.record(Direction::ClientToServer, bytes.clone());
                let length = bytes.len() as u64 + 1;
                // Before the server has it: one that ends at once is gone before the write returns.
                written.fetch_add(length, Ordering::Relaxed);
                let sent = writer.write(bytes).await;
                if sent.is_err() {
                    written.fetch_sub(length, Ordering::Relaxed);
                }
                sent
            };
            tokio::select! {
                biased;
                () = closing.cancelled() => Err(WireError::Closed),
                written = writing => written,
            }
        }
    }

    async fn write_joined(&self, frames: Vec<(Arc<str>, Bytes)>, pause: Option<Duration>) -> Result<(), WireError> {
        let mut writer = self.lock_writer().await;
        let writer = writer.as_mut().ok_or(WireError::Closed)?;
        let mut bytes = Vec::new();
        for (case, frame) in frames {
            bytes.extend_from_slice(&frame);
            bytes.push(b'\n');
            self.recorder.note(EventKind::Case(case));
            self.recorder.record(Direction::ClientToServer, frame);
        }
        let (first, second) = bytes.split_at(pause.map_or(bytes.len(), |_| bytes.len() / 2));
        writer.write_bytes(first).await?;
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
            writer.write_bytes(second).await?;
        }
        Ok(())
    }

    /// Enters the mutex's queue at once: it is fair among the futures that have been polled.
    fn lock_writer(&self) -> impl Future<Output = OwnedMutexGuard<Option<Writer>>> + Send + use<> {
        let mut lock = Box::pin(self.writer.clone().lock_owned());
        let free = lock.as_mut().now_or_never();
        async move {
            match free {
                Some(guard) => guard,
                None => lock.await,
            }
        }
    }

    /// Cancels a write in progress, and ends the stream.
    async fn close(&self) {
        self.closing.cancel();
        if let Some(writer) = self.writer.lock().await.take() {
            let _ = timeout(CLOSE_TIMEOUT, writer.close()).await;
        }
    }
}

impl Writer {
    async fn write(&mut self, bytes: Bytes) -> Result<(), WireError> {
        match self {
            Writer::Stdio(writer) => Ok(writer.write(&bytes).await?),
            Writer::Memory(writer) => Ok(writer.write(&bytes).await?),
            Writer::Ws(sink) => ws_stream::send(sink, bytes).await,
        }
    }

    async fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        match self {
            Writer::Stdio(writer) => Ok(writer.write_bytes(bytes).await?),
            Writer::Memory(writer) => Ok(writer.write_bytes(bytes).await?),
            Writer::Ws(_) => Err(WireError::Closed),
        }
    }

    async fn close(self) {
        match self {
            Writer::Stdio(mut writer) => drop(writer.shutdown().await),
            Writer::Memory(mut writer) => drop(writer.shutdown().await),
            Writer::Ws(sink) => ws_stream::close(sink).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn pair(capacity: usize) -> (Outgoing, DuplexStream) {
        let (near, far) = tokio::io::duplex(capacity);
        let (_, writer) = tokio::io::split(near);
        let writer = OrderedWriter::new(ClientRecorder::new(), Writer::Memory(LineWriter::new(writer)));
        (Outgoing::Ordered(writer), far)
    }

    #[tokio::test]
    async fn frames_are_sent_in_order_for_any_order_of_polls() {
        let (outgoing, mut far) = pair(64);
        let sends: Vec<_> = (0..5).map(|n| outgoing.send(Bytes::from(format!("{n}")))).collect();
        let all = futures_util::future::join_all(sends.into_iter().rev());
        let (mut text, sent) = tokio::join!(
            async {
                let mut text = vec![0; 10];
                far.read_exact(&mut text).await.expect("ten bytes");
                String::from_utf8(text).expect("digits")
            },
            all
        );
        assert!(sent.iter().all(Result::is_ok));
        text.retain(|c| c != '\n');
        assert_eq!(text, "01234");
    }

    #[tokio::test]
    async fn closing_cancels_a_write_that_the_server_does_not_read() {
        let (outgoing, mut far) = pair(4);
        let mut stuck = pin!(outgoing.send(Bytes::from_static(b"longer than the pipe")));
        assert!(stuck.as_mut().now_or_never().is_none());
        let ((), sent) = tokio::join!(outgoing.close_input(), stuck);
        assert!(matches!(sent, Err(WireError::Closed)));
        assert!(matches!(outgoing.send(Bytes::new()).await, Err(WireError::Closed)));
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.expect("the end of the stream");
        assert_eq!(rest, b"long");
    }
}
