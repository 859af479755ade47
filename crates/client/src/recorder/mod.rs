//! The recorder of one connection's trace.

#[cfg(test)]
mod tests;
mod unsolicited;
pub(crate) mod unsolicited_tracker;
mod waiter;

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{oneshot, watch},
    task::coop::consume_budget,
    time::Instant,
};

use self::waiter::Waiter;
pub use self::{unsolicited::UnsolicitedFrame, unsolicited_tracker::UnsolicitedPolicy};
pub(crate) use self::{
    unsolicited::{UnsolicitedDetector, excerpt},
    waiter::{AcceptUnsolicited, MatchedFrame, ResponseFilter},
};
use rehearse_protocol::{Closed, Direction, Event, EventKind, Frame, ParseError, Trace};

/// Records the trace of one connection, frames byte for byte, and wakes those that wait for a frame.
///
/// Clones share the record.
#[derive(Clone)]
pub struct ClientRecorder(Arc<Shared>);

/// Sees each event as it is recorded.
pub trait EventSink: Send + Sync {
    /// Takes an event. Nothing else is recorded meanwhile.
    fn take(&self, event: &Event);

    /// Waits until more events can be taken, of an HTTP exchange if they belong to one: nothing more is read from the
    /// server before. Cancel-safe.
    fn room(&self, exchange: Option<u32>) -> BoxFuture<'_, ()> {
        let _ = exchange;
        Box::pin(ready(()))
    }
}

impl<F: Fn(&Event) + Send + Sync> EventSink for F {
    fn take(&self, event: &Event) {
        self(event);
    }
}

/// Sees a recorder before its first event.
pub(crate) type SeeAnother = Box<dyn FnOnce(&ClientRecorder) + Send + Sync>;

struct Shared {
    opened: Instant,
    sink: OnceLock<Box<dyn EventSink>>,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    /// Whether it records a second process of a server.
    is_another: bool,
    /// Sees the recorder of a second process.
    see_another: Mutex<Option<SeeAnother>>,
    /// How many HTTP exchanges have begun.
    exchanges: AtomicU32,
}

#[derive(Default)]
struct State {
    trace: Trace,
    closed: Option<Closed>,
    /// How many frames of the server have come, kept or not.
    received: u64,
    awaited: Vec<Waiter>,
    detail: Detail,
}

/// How many bytes of standard error are recorded as a brief detail.
const MAX_STDERR: usize = 64 << 10;

/// What is recorded besides frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Detail {
    #[default]
    Nothing,
    /// HTTP heads, bodies that are not streams, and so many more bytes of standard error.
    Brief(usize),
    /// HTTP heads, HTTP bodies and standard error.
    Everything,
}

impl Default for ClientRecorder {
    fn default() -> Self {
        ClientRecorder::new()
    }
}

impl ClientRecorder {
    /// A recorder whose clock starts now.
    pub fn new() -> ClientRecorder {
        ClientRecorder::from_trace(Trace::default())
    }

    /// As [`ClientRecorder::new`], but keeps only the last `limit` events, or fewer if they are large, for long
    /// connections. A response to a request that was dropped is still delivered to its waiter.
    pub fn with_limit(limit: usize) -> ClientRecorder {
        ClientRecorder::from_trace(Trace::bounded(limit))
    }

    /// As [`ClientRecorder::new`], but keeps only the first `limit` events, and fewer if they have more than so many bytes.
    /// Its clock started at `began`: recorders with one clock tell what came first on several connections.
    pub fn of_beginning(limit: usize, bytes: usize, began: Instant) -> ClientRecorder {
        ClientRecorder::with(Trace::beginning(limit, bytes), began, Detail::Nothing, false)
    }

    fn from_trace(trace: Trace) -> ClientRecorder {
        ClientRecorder::with(trace, Instant::now(), Detail::Nothing, false)
    }

    fn with(trace: Trace, opened: Instant, detail: Detail, is_another: bool) -> ClientRecorder {
        let state = State { trace, detail, ..State::default() };
        let (changed, _) = watch::channel(());
        ClientRecorder(Arc::new(Shared {
            opened,
            sink: OnceLock::new(),
            state: Mutex::new(state),
            changed,
            is_another,
            see_another: Mutex::default(),
            exchanges: AtomicU32::new(0),
        }))
    }

    /// Sees the recorder of a second process, if a session starts one to open: two processes are two connections. It has the
    /// limits, the details and the clock of this one.
    pub fn on_another(&self, see: impl FnOnce(&ClientRecorder) + Send + Sync + 'static) {
        *self.0.see_another.lock() = Some(Box::new(see));
    }

    /// What sees the recorder of a second process.
    pub(crate) fn take_see_another(&self) -> Option<SeeAnother> {
        self.0.see_another.lock().take()
    }

    /// The recorder of a second process.
    pub(crate) fn another(&self, see: Option<SeeAnother>) -> ClientRecorder {
        let (trace, detail) = {
            let state = self.state();
            (state.trace.new_empty(), state.detail)
        };
        let another = ClientRecorder::with(trace, self.0.opened, detail, true);
        if let Some(see) = see {
            see(&another);
        }
        another
    }

    /// Whether it records a second process of a server.
    pub fn is_another(&self) -> bool {
        self.0.is_another
    }

    /// The same recorder, which from now on also records HTTP heads, HTTP bodies that are not messages, and standard error.
    #[must_use]
    pub fn with_details(self) -> ClientRecorder {
        self.state().detail = Detail::Everything;
        self
    }

    /// As [`ClientRecorder::with_details`], without the bytes of streams, and with the beginning of standard error only: a
    /// server may write much more there than messages.
    #[must_use]
    pub fn with_brief_details(self) -> ClientRecorder {
        self.state().detail = Detail::Brief(MAX_STDERR);
        self
    }

    /// Passes each event from now on to a sink, in order. A connection has one sink: only the first counts.
    pub fn set_sink(&self, sink: Box<dyn EventSink>) {
        let _ = self.0.sink.set(sink);
    }

    /// Waits until the sink can take more events, of an HTTP exchange if they belong to one. Cancel-safe.
    pub async fn room(&self, exchange: Option<u32>) {
        if let Some(sink) = self.0.sink.get() {
            sink.room(exchange).await;
        }
    }

    /// When the clock of the events started.
    pub fn opened(&self) -> Instant {
        self.0.opened
    }

    /// Whether both record the same connection.
    pub fn is_same_as(&self, other: &ClientRecorder) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number for a new HTTP exchange of the connection.
    pub(crate) fn new_exchange(&self) -> u32 {
        self.0.exchanges.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a frame that is being written or has just been read, and returns it.
    pub fn record(&self, direction: Direction, bytes: Bytes) -> Frame {
        self.record_in(None, direction, bytes)
    }

    /// As [`ClientRecorder::record`], for a frame of an HTTP exchange.
    pub(crate) fn record_in(&self, exchange: Option<u32>, direction: Direction, bytes: Bytes) -> Frame {
        let mut state = self.state();
        // Within the lock, so that times are in the order of the frames.
        let frame = Frame::new(direction, self.0.opened.elapsed(), bytes);
        state.awaited.retain(|waiter| !waiter.matched.is_closed());
        if direction == Direction::ServerToClient {
            state.received += 1;
            if !state.awaited.is_empty() {
                state.deliver(&frame);
            }
        }
        self.push(&mut state, Event { at: frame.at, exchange, kind: EventKind::Frame(frame.clone()) });
        drop(state);
        self.0.changed.send_replace(());
        frame
    }

    /// Says which case of a probe the next message is.
    pub fn announce(&self, case: &str) {
        self.note(EventKind::Case(case.into()));
    }

    /// Adds an event that is not a frame.
    pub(crate) fn note(&self, kind: EventKind) {
        self.note_in(None, kind);
    }

    /// As [`ClientRecorder::note`], for an event of an HTTP exchange.
    pub(crate) fn note_in(&self, exchange: Option<u32>, kind: EventKind) {
        let mut state = self.state();
        let at = self.0.opened.elapsed();
        self.push(&mut state, Event { at, exchange, kind });
        drop(state);
        self.0.changed.send_replace(());
    }

    /// As [`ClientRecorder::note`], if details are recorded.
    pub(crate) fn note_detail(&self, exchange: Option<u32>, kind: impl FnOnce() -> EventKind) {
        let detail = self.state().detail;
        if detail != Detail::Nothing {
            self.note_in(exchange, kind());
        }
    }

    /// As [`ClientRecorder::note_detail`], for a body that is not a message.
    pub(crate) fn note_body(&self, exchange: Option<u32>, bytes: Bytes) {
        if !bytes.is_empty() {
            self.note_detail(exchange, || EventKind::HttpBody { direction: Direction::ServerToClient, bytes });
        }
    }

    /// As [`ClientRecorder::note_detail`], for a part of a stream, whose messages are recorded as frames.
    pub(crate) fn note_chunk(&self, exchange: Option<u32>, bytes: &Bytes) {
        let detail = self.state().detail;
        if detail == Detail::Everything {
            let kind = EventKind::HttpBody { direction: Direction::ServerToClient, bytes: bytes.clone() };
            self.note_in(exchange, kind);
        }
    }

    /// As [`ClientRecorder::note_detail`], for a line of standard error.
    pub(crate) fn note_stderr(&self, line: &str) {
        let mut state = self.state();
        let is_recorded = match &mut state.detail {
            Detail::Nothing => false,
            Detail::Everything => true,
            Detail::Brief(left) => {
                let is_recorded = *left > line.len();
                *left = left.saturating_sub(line.len() + 1);
                is_recorded
            }
        };
        drop(state);
        if is_recorded {
            self.note(EventKind::Stderr(line.to_owned().into()));
        }
    }

    /// Ends the trace. Only the first end is kept.
    pub fn close(&self, closed: Closed) {
        let mut state = self.state();
        if state.closed.is_none() {
            let at = self.0.opened.elapsed();
            self.push(&mut state, Event { at, exchange: None, kind: EventKind::Closed(closed.clone()) });
            state.closed = Some(closed);
        }
        state.awaited.clear();
        drop(state);
        self.0.changed.send_replace(());
    }

    /// How the connection ended, after it.
    pub fn closed(&self) -> Option<Closed> {
        self.state().closed.clone()
    }

    /// Whether events were dropped after the last one that is kept.
    pub fn is_full(&self) -> bool {
        self.state().trace.is_full()
    }

    /// The bytes of the events that are kept.
    pub fn bytes(&self) -> usize {
        self.state().trace.bytes()
    }

    /// The size of the largest frame that is read.
    pub(crate) fn largest(&self) -> usize {
        self.state().trace.largest()
    }

    /// The index of the first event that is kept.
    pub fn start(&self) -> usize {
        self.state().trace.start()
    }

    /// The number of events so far: the index of the next one.
    pub fn end(&self) -> usize {
        self.state().trace.end()
    }

    /// How many frames of the server have come.
    pub(crate) fn received(&self) -> u64 {
        self.state().received
    }

    /// The trace so far.
    pub fn trace(&self) -> Trace {
        self.state().trace.clone()
    }

    /// What `pick` finds in the last event in which it finds something.
    pub fn find_last<T>(&self, pick: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        self.state().trace.events().rev().find_map(pick)
    }

    /// The first line of the server that is no message, of those that are kept.
    pub(crate) fn wrong_output(&self) -> Option<String> {
        let frames = self.since(self.start());
        let line = frames.iter().find(|frame| {
            let is_wrong = matches!(frame.head(), Err(ParseError::NotJson(_) | ParseError::Invalid { id: None, .. }));
            frame.direction == Direction::ServerToClient && is_wrong
        });
        line.map(|frame| excerpt(&String::from_utf8_lossy(&frame.bytes)))
    }

    /// The events from index `read` on, as far as they are kept; `read` is then [`ClientRecorder::end`].
    pub fn read(&self, read: &mut usize) -> Vec<Event> {
        let state = self.state();
        let events = state.trace.since(*read).map(|(_, event)| event.clone()).collect();
        *read = state.trace.end();
        events
    }

    /// The frames from `index` on, as far as they are kept.
    pub fn since(&self, index: usize) -> Vec<Frame> {
        self.state().trace.frames_since(index).map(|(_, frame)| frame.clone()).collect()
    }

    /// As [`ClientRecorder::since`], each with its index.
    pub fn numbered_since(&self, index: usize) -> Vec<(usize, Frame)> {
        self.state().trace.frames_since(index).map(|(index, frame)| (index, frame.clone())).collect()
    }

    /// Waits for events from index `read` on; false if the connection closes without any, or no more are kept.
    /// Cancel-safe.
    pub async fn has_more(&self, read: usize) -> bool {
        // A limit of the time must be seen although events flow.
        consume_budget().await;
        let mut changed = self.0.changed.subscribe();
        loop {
            let (end, closed) = {
                let state = self.state();
                (state.trace.end(), state.closed.is_some() || state.trace.is_full())
            };
            if end > read {
                return true;
            }
            if closed || changed.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Waits until the trace has dropped an event from index `from` on, because it has reached its limit. Cancel-safe.
    pub async fn overflow(&self, from: usize) {
        let mut changed = self.0.changed.subscribe();
        while self.start() <= from {
            // The sender is in `self`.
            let _ = changed.changed().await;
        }
    }

    /// The first frame from index `from` on that the predicate accepts, with its index; `None` if the connection closes
    /// without one. The predicate sees every frame once. Cancel-safe.
    pub async fn wait_for(&self, mut from: usize, mut predicate: impl FnMut(&Frame) -> bool) -> Option<(usize, Frame)> {
        let mut changed = self.0.changed.subscribe();
        loop {
            let (frames, end, closed) = {
                let state = self.state();
                let frames: Vec<_> =
                    state.trace.frames_since(from).map(|(index, frame)| (index, frame.clone())).collect();
                (frames, state.trace.end(), state.closed.is_some() || state.trace.is_full())
            };
            for (index, frame) in frames {
                if predicate(&frame) {
                    return Some((index, frame));
                }
            }
            from = end;
            if closed {
                return None;
            }
            changed.changed().await.ok()?;
        }
    }

    /// The first frame from index `from` on that matches; `None` if the connection closes without one. Cancel-safe.
    pub async fn wait_for_response(&self, from: usize, wanted: ResponseFilter<'_>) -> Option<MatchedFrame> {
        let matched = {
            let mut state = self.state();
            state.awaited.retain(|waiter| !waiter.matched.is_closed());
            if let Some(found) = state.find(from, wanted, state.awaited.is_empty()) {
                return Some(found);
            }
            if state.closed.is_some() {
                return None;
            }
            let (waiter, matched) = oneshot::channel();
            let ResponseFilter { id, unaddressed, unsolicited } = wanted;
            state.awaited.push(Waiter { id: id.cloned(), unaddressed, unsolicited, matched: waiter });
            matched
        };
        matched.await.ok()
    }

    /// As [`ClientRecorder::wait_for_response`], among the recorded frames only.
    pub fn find_response(&self, from: usize, wanted: ResponseFilter<'_>) -> Option<MatchedFrame> {
        let state = self.state();
        state.find(from, wanted, state.awaited.iter().all(|waiter| waiter.matched.is_closed()))
    }

    fn push(&self, state: &mut State, event: Event) {
        if let Some(sink) = self.0.sink.get() {
            sink.take(&event);
        }
        state.trace.push_event(event);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl fmt::Debug for ClientRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRecorder").field("events", &self.end()).field("closed", &self.closed()).finish()
    }
}
