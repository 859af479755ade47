//! A connection on which frames flow freely both ways, as rmcp sees it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
};
use tokio::{
    io::{DuplexStream, ReadHalf, WriteHalf},
    process::{ChildStdin, ChildStdout},
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{LinkError, events::EventReader, sse_poster::Poster, ws_stream};
use crate::recorder::TraceRecorder;
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::{Closed, ClosedHow, Direction, EventKind, message::split_batch};

/// How many lines that rmcp cannot parse are skipped before other tasks run.
const SKIPPED_PER_YIELD: usize = 32;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to read what a process still writes after the end of its standard input.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// The rmcp transport for all but streamable HTTP. What rmcp cannot parse is only recorded.
pub(crate) struct Duplex {
    recorder: TraceRecorder,
    incoming: Incoming,
    outgoing: Outgoing,
    batch: VecDeque<Bytes>,
}

/// Where frames come from.
pub(crate) enum Incoming {
    Stdio(LineReader<ChildStdout>),
    Memory(LineReader<ReadHalf<DuplexStream>>),
    Ws(ws_stream::Stream),
    Sse(Box<EventReader>),
}

/// Where frames go, shared by rmcp and raw senders.
#[derive(Clone)]
pub(crate) enum Outgoing {
    Ordered(OrderedWriter),
    Sse(Poster),
}

/// A writer that writes one frame at a time, in the order of the calls.
#[derive(Clone)]
pub(crate) struct OrderedWriter {
    recorder: TraceRecorder,
    writer: Arc<Mutex<Option<Writer>>>,
    closing: CancellationToken,
}

pub(crate) enum Writer {
    Stdio(LineWriter<ChildStdin>),
    Memory(LineWriter<WriteHalf<DuplexStream>>),
    Ws(ws_stream::Sink),
}

impl Duplex {
    pub(crate) fn new(recorder: TraceRecorder, incoming: Incoming, outgoing: Outgoing) -> Duplex {
        Duplex { recorder, incoming, outgoing, batch: VecDeque::new() }
    }

    pub(crate) fn outgoing(&self) -> Outgoing {
        self.outgoing.clone()
    }

    /// Reads and records one frame; false at the end, which is recorded. Cancel-safe.
    pub(crate) async fn read_frame(&mut self) -> bool {
        match self.incoming.next().await {
            Ok(bytes) => {
                self.recorder.record_in(self.incoming.exchange(), Direction::ServerToClient, bytes);
                true
            }
            Err(closed) => {
                self.recorder.close(closed);
                false
            }
        }
    }

    async fn next_message(&mut self) -> Option<Bytes> {
        if let Some(part) = self.batch.pop_front() {
            return Some(part);
        }
        match self.incoming.next().await {
            Ok(bytes) => {
                self.recorder.record_in(self.incoming.exchange(), Direction::ServerToClient, bytes.clone());
                match split_batch(&bytes) {
                    Ok(parts) => {
                        self.batch = parts.into();
                        self.batch.pop_front()
                    }
                    Err(_) => Some(bytes),
                }
            }
            Err(closed) => {
                self.recorder.close(closed);
                None
            }
        }
    }
}

impl rmcp::transport::Transport<RoleClient> for Duplex {
    type Error = LinkError;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), LinkError>> + Send + 'static {
        let sending = serde_json::to_vec(&item).map(|bytes| self.outgoing.send(bytes.into()));
        async move {
            match sending {
                Ok(sending) => sending.await.map(|_| ()),
                Err(error) => Err(LinkError::Invalid(error.to_string())),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let mut skipped: usize = 0;
        loop {
            let bytes = self.next_message().await?;
            if let Ok(message) = serde_json::from_slice(&bytes) {
                return Some(message);
            }
            // Endless output must not block senders and the shutdown.
            skipped += 1;
            if skipped.is_multiple_of(SKIPPED_PER_YIELD) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        if let Outgoing::Ordered(writer) = &self.outgoing {
            writer.close().await;
        }
        if let Incoming::Ws(_) = self.incoming {
            let rest = async {
                loop {
                    if let Err(closed) = self.incoming.next().await {
                        return closed;
                    }
                }
            };
            let why = match timeout(CLOSE_TIMEOUT, rest).await {
                Ok(closed) if closed.how == ClosedHow::Clean => None,
                Ok(closed) => Some(closed.text),
                Err(_) => Some("no close frame came".into()),
            };
            if let Some(why) = why {
                let text = format!("the session was closed, but not the WebSocket: {why}");
                self.recorder.close(Closed::by_client(text).with(ClosedHow::NoCloseFrame));
            }
        }
        if let Incoming::Stdio(_) = self.incoming {
            let rest = async {
                while let Ok(bytes) = self.incoming.next().await {
                    self.recorder.record(Direction::ServerToClient, bytes);
                }
            };
            let _ = timeout(DRAIN_TIMEOUT, rest).await;
        }
        self.recorder.close(Closed::by_client("the session was closed"));
        Ok(())
    }
}

impl Incoming {
    /// The number of the HTTP exchange in the trace that the frames come from.
    fn exchange(&self) -> Option<u32> {
        match self {
            Incoming::Sse(reader) => reader.exchange(),
            _ => None,
        }
    }

    /// The next frame, or how the connection ended. Cancel-safe.
    async fn next(&mut self) -> Result<Bytes, Closed> {
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
    pub(crate) fn send(&self, bytes: Bytes) -> impl Future<Output = Result<Option<u16>, LinkError>> + Send + use<> {
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
    /// [`LinkError::Closed`] also where frames are no lines of a stream.
    pub(crate) async fn write_joined(
        &self,
        frames: Vec<(Arc<str>, Bytes)>,
        pause: Option<Duration>,
    ) -> Result<(), LinkError> {
        match self {
            Outgoing::Ordered(writer) => writer.write_joined(frames, pause).await,
            Outgoing::Sse(_) => Err(LinkError::Closed),
        }
    }

    /// Ends the stream to the server.
    pub(crate) async fn close_input(&self) {
        if let Outgoing::Ordered(writer) = self {
            writer.close().await;
        }
    }
}

impl OrderedWriter {
    pub(crate) fn new(recorder: TraceRecorder, writer: Writer) -> OrderedWriter {
        OrderedWriter { recorder, writer: Arc::new(Mutex::new(Some(writer))), closing: CancellationToken::new() }
    }

    fn send(&self, bytes: Bytes) -> impl Future<Output = Result<(), LinkError>> + Send + use<> {
        let turn = self.lock_writer();
        let (recorder, closing) = (self.recorder.clone(), self.closing.clone());
        async move {
            let writing = async {
                let mut writer = turn.await;
                let writer = writer.as_mut().ok_or(LinkError::Closed)?;
                recorder.record(Direction::ClientToServer, bytes.clone());
                writer.write(bytes).await
            };
            tokio::select! {
                biased;
                () = closing.cancelled() => Err(LinkError::Closed),
                written = writing => written,
            }
        }
    }

    async fn write_joined(&self, frames: Vec<(Arc<str>, Bytes)>, pause: Option<Duration>) -> Result<(), LinkError> {
        let mut writer = self.lock_writer().await;
        let writer = writer.as_mut().ok_or(LinkError::Closed)?;
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
    async fn write(&mut self, bytes: Bytes) -> Result<(), LinkError> {
        match self {
            Writer::Stdio(writer) => Ok(writer.write(&bytes).await?),
            Writer::Memory(writer) => Ok(writer.write(&bytes).await?),
            Writer::Ws(sink) => ws_stream::send(sink, bytes).await,
        }
    }

    async fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        match self {
            Writer::Stdio(writer) => Ok(writer.write_bytes(bytes).await?),
            Writer::Memory(writer) => Ok(writer.write_bytes(bytes).await?),
            Writer::Ws(_) => Err(LinkError::Closed),
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

    use rmcp::transport::Transport as _;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pair(capacity: usize) -> (Duplex, DuplexStream, TraceRecorder) {
        let (near, far) = tokio::io::duplex(capacity);
        let (reader, writer) = tokio::io::split(near);
        let recorder = TraceRecorder::new();
        let writer = OrderedWriter::new(recorder.clone(), Writer::Memory(LineWriter::new(writer)));
        let incoming = Incoming::Memory(LineReader::new(reader));
        (Duplex::new(recorder.clone(), incoming, Outgoing::Ordered(writer)), far, recorder)
    }

    #[tokio::test]
    async fn frames_are_sent_in_order_for_any_order_of_polls() {
        let (link, mut far, _) = pair(64);
        let sends: Vec<_> = (0..5).map(|n| link.outgoing().send(Bytes::from(format!("{n}")))).collect();
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
    async fn frames_that_rmcp_cannot_parse_are_skipped_but_recorded() {
        let (mut link, mut far, recorder) = pair(1024);
        let lines = "garbage\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        far.write_all(lines.as_bytes()).await.expect("an open pipe");
        assert!(matches!(link.receive().await, Some(ServerJsonRpcMessage::Response(_))));
        assert_eq!(recorder.since(0).iter().map(|frame| frame.bytes.len()).collect::<Vec<_>>(), [7, 36]);
    }

    #[tokio::test]
    async fn a_batch_is_one_frame_and_reaches_rmcp_in_parts() {
        let (mut link, mut far, recorder) = pair(1024);
        let answer = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
        far.write_all(format!("[{},{}]\n", answer(1), answer(2)).as_bytes()).await.expect("an open pipe");
        for _ in 0..2 {
            assert!(matches!(link.receive().await, Some(ServerJsonRpcMessage::Response(_))));
        }
        assert_eq!(recorder.end(), 1);
    }

    #[tokio::test]
    async fn closing_cancels_a_write_that_the_server_does_not_read() {
        let (mut link, mut far, recorder) = pair(4);
        let mut stuck = pin!(link.outgoing().send(Bytes::from_static(b"longer than the pipe")));
        assert!(stuck.as_mut().now_or_never().is_none());
        let (closed, sent) = tokio::join!(link.close(), stuck);
        assert!(closed.is_ok() && matches!(sent, Err(LinkError::Closed)));
        assert!(matches!(link.outgoing().send(Bytes::new()).await, Err(LinkError::Closed)));
        assert_eq!(recorder.closed(), Some(Closed::by_client("the session was closed")));
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.expect("the end of the stream");
        assert_eq!(rest, b"long");
    }

    #[tokio::test]
    async fn the_end_of_the_stream_closes_the_connection_and_says_why() {
        let (mut link, far, recorder) = pair(64);
        drop(far);
        assert!(link.receive().await.is_none());
        assert_eq!(recorder.closed(), Some(Closed::by_server("the server closed the pipe")));
    }
}
