//! The recorder of one connection's trace.

mod handshake;
mod unsolicited;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use bytes::Bytes;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

pub use self::unsolicited::UnsolicitedFrame;
pub(crate) use self::{handshake::Handshake, unsolicited::UnsolicitedDetector};
use rehearse_protocol::{Direction, Event, EventKind, Frame, Id, Message, ParseError, Trace, message::split_batch};

/// Records the trace of one connection, frames byte for byte, and wakes those that wait for a frame.
///
/// Clones share the record.
#[derive(Clone)]
pub struct TraceRecorder(Arc<Shared>);

/// Sees each event as it is recorded.
pub type EventSink = Box<dyn Fn(&Event) + Send + Sync>;

struct Shared {
    opened: Instant,
    sink: OnceLock<EventSink>,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    /// The recorder of the connection, if this one records an attempt to open it.
    connection: Option<TraceRecorder>,
    /// How many HTTP exchanges have begun.
    exchanges: AtomicU32,
}

#[derive(Default)]
struct State {
    trace: Trace,
    /// Until it is taken.
    handshake: Option<Handshake>,
    closed: Option<Arc<str>>,
    awaited: Vec<Waiter>,
    /// Whether HTTP heads, HTTP bodies and lines of standard error are recorded.
    is_detailed: bool,
    attempt: AttemptState,
}

/// The state of an attempt to open a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AttemptState {
    #[default]
    Open,
    /// The attempt has become the connection.
    Selected,
    Abandoned,
}

struct Waiter {
    id: Option<Id>,
    unaddressed: bool,
    unsolicited: AcceptUnsolicited,
    matched: oneshot::Sender<MatchedFrame>,
}

/// Which frames are the answer to a message of the client.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFilter<'a> {
    /// A response with this id, even if it is otherwise invalid.
    pub id: Option<&'a Id>,
    /// Also an error without an id.
    pub unaddressed: bool,
    /// Also these unsolicited frames, while no other request waits.
    pub unsolicited: AcceptUnsolicited,
}

/// Which [`UnsolicitedFrame`]s are taken for an answer. A second response never is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptUnsolicited {
    #[default]
    None,
    /// Responses to unknown ids.
    Responses,
    Any,
}

/// A frame that matches a [`ResponseFilter`].
#[derive(Clone, Debug)]
pub struct MatchedFrame {
    pub frame: Frame,
    /// Its index in the record.
    pub index: usize,
    /// Why it is unsolicited, if it does not have the id.
    pub unsolicited: Option<UnsolicitedFrame>,
}

/// How a frame matches.
enum MatchKind {
    Addressed,
    Unsolicited(UnsolicitedFrame),
}

impl Default for TraceRecorder {
    fn default() -> Self {
        TraceRecorder::new()
    }
}

impl TraceRecorder {
    /// A recorder whose clock starts now.
    pub fn new() -> TraceRecorder {
        TraceRecorder::from_trace(Trace::default())
    }

    /// As [`TraceRecorder::new`], but keeps only the last `limit` events, or fewer if they are large, for long
    /// connections. A response to a request that was dropped is still delivered to its waiter.
    pub fn with_limit(limit: usize) -> TraceRecorder {
        TraceRecorder::from_trace(Trace::bounded(limit))
    }

    fn from_trace(trace: Trace) -> TraceRecorder {
        let (changed, _) = watch::channel(());
        let state = State { trace, handshake: Some(Handshake::default()), ..State::default() };
        TraceRecorder(Arc::new(Shared {
            opened: Instant::now(),
            sink: OnceLock::new(),
            state: Mutex::new(state),
            changed,
            connection: None,
            exchanges: AtomicU32::new(0),
        }))
    }

    /// A recorder of one of several attempts to open this connection. The connection records all that it does, except
    /// the end. Only an attempt sees its own frames alone.
    pub(crate) fn attempt(&self) -> TraceRecorder {
        let trace = self.state().trace.new_empty();
        let state = State { trace, handshake: Some(Handshake::default()), ..State::default() };
        let (opened, connection) = (self.0.opened, Some(self.clone()));
        let (changed, _) = watch::channel(());
        TraceRecorder(Arc::new(Shared {
            opened,
            sink: OnceLock::new(),
            state: Mutex::new(state),
            changed,
            connection,
            exchanges: AtomicU32::new(0),
        }))
    }

    /// Makes this attempt the connection: from now on, only the connection records.
    pub(crate) fn select(&self) {
        let Some(connection) = &self.0.connection else { return };
        let mut state = self.state();
        let State { closed, .. } =
            std::mem::replace(&mut *state, State { attempt: AttemptState::Selected, ..State::default() });
        connection.take_handshake();
        if let Some(reason) = closed {
            connection.close(reason);
        }
    }

    /// Ends this attempt: the connection records only the exit of its process from now on.
    pub(crate) fn abandon(&self) {
        self.state().attempt = AttemptState::Abandoned;
    }

    /// The recorder of the connection, of which this may be an attempt.
    pub(crate) fn connection(&self) -> TraceRecorder {
        self.0.connection.as_ref().unwrap_or(self).clone()
    }

    /// The same recorder, which from now on also records HTTP heads, HTTP bodies that are not messages, and standard error.
    #[must_use]
    pub fn with_details(self) -> TraceRecorder {
        self.state().is_detailed = true;
        self
    }

    /// Passes each event from now on to a sink, in order. A connection has one sink: only the first counts.
    pub fn set_sink(&self, sink: EventSink) {
        let _ = self.0.sink.set(sink);
    }

    /// When the clock of the events started.
    pub fn opened(&self) -> Instant {
        self.0.opened
    }

    /// Whether both record the same connection.
    pub fn is_same_as(&self, other: &TraceRecorder) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number for a new HTTP exchange of the connection.
    pub(crate) fn new_exchange(&self) -> u32 {
        match &self.0.connection {
            Some(connection) => connection.new_exchange(),
            None => self.0.exchanges.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Adds a frame that is being written or has just been read.
    pub fn record(&self, direction: Direction, bytes: Bytes) {
        self.record_in(None, direction, bytes);
    }

    /// As [`TraceRecorder::record`], for a frame of an HTTP exchange.
    pub(crate) fn record_in(&self, exchange: Option<u32>, direction: Direction, bytes: Bytes) {
        let mut state = self.state();
        match (&self.0.connection, state.attempt) {
            (None, _) => {}
            (Some(connection), AttemptState::Open) => connection.record_in(exchange, direction, bytes.clone()),
            (Some(connection), AttemptState::Selected) => return connection.record_in(exchange, direction, bytes),
            (Some(_), AttemptState::Abandoned) => return,
        }
        // Within the lock, so that times are in the order of the frames.
        let frame = Frame { direction, at: self.0.opened.elapsed(), bytes };
        state.awaited.retain(|waiter| !waiter.matched.is_closed());
        if direction == Direction::ServerToClient && !state.awaited.is_empty() {
            state.deliver(&frame);
        }
        if let Some(handshake) = &mut state.handshake {
            handshake.observe(&frame);
        }
        self.push(&mut state, Event { at: frame.at, exchange, kind: EventKind::Frame(frame) });
        drop(state);
        self.0.changed.send_replace(());
    }

    /// Adds an event that is not a frame.
    pub(crate) fn note(&self, kind: EventKind) {
        self.note_in(None, kind);
    }

    /// As [`TraceRecorder::note`], for an event of an HTTP exchange.
    pub(crate) fn note_in(&self, exchange: Option<u32>, kind: EventKind) {
        if let Some(connection) = &self.0.connection {
            return connection.note_in(exchange, kind);
        }
        let mut state = self.state();
        let at = self.0.opened.elapsed();
        self.push(&mut state, Event { at, exchange, kind });
        drop(state);
        self.0.changed.send_replace(());
    }

    /// As [`TraceRecorder::note`], if details are recorded.
    pub(crate) fn note_detail(&self, exchange: Option<u32>, kind: impl FnOnce() -> EventKind) {
        if let Some(connection) = &self.0.connection {
            return connection.note_detail(exchange, kind);
        }
        let is_detailed = self.state().is_detailed;
        if is_detailed {
            self.note_in(exchange, kind());
        }
    }

    /// Ends the trace with a reason. Only the first reason is kept.
    pub fn close(&self, why: impl Into<Arc<str>>) {
        let mut state = self.state();
        if let (Some(connection), AttemptState::Selected) = (&self.0.connection, state.attempt) {
            return connection.close(why);
        }
        if state.closed.is_none() {
            let reason = why.into();
            let at = self.0.opened.elapsed();
            let kind = EventKind::Closed { reason: Arc::clone(&reason) };
            self.push(&mut state, Event { at, exchange: None, kind });
            state.closed = Some(reason);
        }
        state.awaited.clear();
        drop(state);
        self.0.changed.send_replace(());
    }

    /// The reason of the end, after it.
    pub fn closed(&self) -> Option<Arc<str>> {
        self.state().closed.clone()
    }

    /// The index of the first event that is kept.
    pub fn start(&self) -> usize {
        self.state().trace.start()
    }

    /// The number of events so far: the index of the next one.
    pub fn end(&self) -> usize {
        self.state().trace.end()
    }

    /// The trace so far.
    pub fn trace(&self) -> Trace {
        self.state().trace.clone()
    }

    /// What `pick` finds in the last event in which it finds something.
    pub fn find_last<T>(&self, pick: impl FnMut(&Event) -> Option<T>) -> Option<T> {
        self.state().trace.events().rev().find_map(pick)
    }

    /// The events from index `read` on, as far as they are kept; `read` is then [`TraceRecorder::end`].
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

    /// As [`TraceRecorder::since`], each with its index.
    pub fn numbered_since(&self, index: usize) -> Vec<(usize, Frame)> {
        self.state().trace.frames_since(index).map(|(index, frame)| (index, frame.clone())).collect()
    }

    /// Waits for events from index `read` on; false if the connection closes without any. Cancel-safe.
    pub async fn has_more(&self, read: usize) -> bool {
        let mut changed = self.0.changed.subscribe();
        loop {
            let (end, closed) = {
                let state = self.state();
                (state.trace.end(), state.closed.is_some())
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

    /// The result of the handshake, which is no longer watched for after that.
    pub fn take_handshake(&self) -> Handshake {
        self.state().handshake.take().unwrap_or_default()
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
                (frames, state.trace.end(), state.closed.is_some())
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

    /// As [`TraceRecorder::wait_for_response`], among the recorded frames only.
    pub fn find_response(&self, from: usize, wanted: ResponseFilter<'_>) -> Option<MatchedFrame> {
        let state = self.state();
        state.find(from, wanted, state.awaited.iter().all(|waiter| waiter.matched.is_closed()))
    }

    fn push(&self, state: &mut State, event: Event) {
        if let Some(sink) = self.0.sink.get() {
            sink(&event);
        }
        state.trace.push_event(event);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TraceRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceRecorder").field("events", &self.end()).field("closed", &self.closed()).finish()
    }
}

impl State {
    /// Delivers a frame that is about to be recorded to its waiters.
    fn deliver(&mut self, frame: &Frame) {
        let (index, is_alone) = (self.trace.end(), self.awaited.len() == 1);
        let ids = response_ids(&frame.bytes);
        let mut awaited = std::mem::take(&mut self.awaited);
        let fits = |waiter: &Waiter| {
            let wanted = ResponseFilter {
                id: waiter.id.as_ref(),
                unaddressed: waiter.unaddressed,
                unsolicited: waiter.unsolicited.for_waiter(is_alone),
            };
            self.match_kind(index, frame, &ids, wanted)
        };
        let mut rest = Vec::with_capacity(awaited.len());
        for waiter in awaited.drain(..) {
            match fits(&waiter) {
                None => rest.push(waiter),
                Some(match_kind) => drop(waiter.matched.send(MatchedFrame::new(frame.clone(), index, match_kind))),
            }
        }
        self.awaited = rest;
    }

    fn find(&self, from: usize, wanted: ResponseFilter<'_>, is_alone: bool) -> Option<MatchedFrame> {
        let wanted = ResponseFilter { unsolicited: wanted.unsolicited.for_waiter(is_alone), ..wanted };
        let mut frames =
            self.trace.frames_since(from).filter(|(_, frame)| frame.direction == Direction::ServerToClient);
        frames.find_map(|(index, frame)| {
            let match_kind = self.match_kind(index, frame, &response_ids(&frame.bytes), wanted)?;
            Some(MatchedFrame::new(frame.clone(), index, match_kind))
        })
    }

    /// How a frame of the server with this index, which has these response ids, matches.
    fn match_kind(&self, index: usize, frame: &Frame, ids: &[Id], wanted: ResponseFilter<'_>) -> Option<MatchKind> {
        if wanted.id.is_some_and(|id| ids.contains(id)) {
            return Some(MatchKind::Addressed);
        }
        if !wanted.unaddressed && wanted.unsolicited == AcceptUnsolicited::None {
            return None;
        }
        let message = frame.message();
        let is_none = || matches!(message, Err(ParseError::NotJson(_)));
        if ids.is_empty() && matches!(message, Ok(Message::Request(_) | Message::Notification(_)))
            || is_none() && wanted.unsolicited != AcceptUnsolicited::Any
        {
            return None;
        }
        let mut detector = UnsolicitedDetector::default();
        for earlier in self.trace.frames_before(index) {
            detector.observe(earlier);
        }
        match detector.observe(frame)? {
            unsolicited @ UnsolicitedFrame::ErrorWithoutId(_) => Some(MatchKind::Unsolicited(unsolicited)),
            UnsolicitedFrame::DuplicateResponse(_) => None,
            UnsolicitedFrame::NotAMessage { .. } if wanted.unsolicited != AcceptUnsolicited::Any => None,
            unsolicited => {
                (wanted.unsolicited != AcceptUnsolicited::None).then_some(MatchKind::Unsolicited(unsolicited))
            }
        }
    }
}

impl AcceptUnsolicited {
    /// The same for the only waiter, nothing for one of several.
    fn for_waiter(self, is_alone: bool) -> AcceptUnsolicited {
        if is_alone { self } else { AcceptUnsolicited::None }
    }
}

impl MatchedFrame {
    fn new(frame: Frame, index: usize, match_kind: MatchKind) -> MatchedFrame {
        let unsolicited = match match_kind {
            MatchKind::Addressed => None,
            MatchKind::Unsolicited(unsolicited) => Some(unsolicited),
        };
        MatchedFrame { frame, index, unsolicited }
    }
}

/// The ids of the responses in a frame: at most one, unless it is a batch.
fn response_ids(bytes: &Bytes) -> Vec<Id> {
    match Message::parse(bytes) {
        Ok(Message::Response(response)) => response.id.into_iter().collect(),
        Err(ParseError::Invalid { id, .. }) => id.into_iter().collect(),
        Err(ParseError::Batch) => split_batch(bytes).unwrap_or_default().iter().flat_map(response_ids).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use futures_util::FutureExt;

    use super::*;

    fn receive(recorder: &TraceRecorder, text: &'static str) {
        recorder.record(Direction::ServerToClient, Bytes::from_static(text.as_bytes()));
    }

    fn by_id(id: &Id) -> ResponseFilter<'_> {
        ResponseFilter { id: Some(id), unaddressed: false, unsolicited: AcceptUnsolicited::None }
    }

    #[tokio::test(start_paused = true)]
    async fn frames_carry_the_time_since_the_connection_was_opened() {
        let recorder = TraceRecorder::new();
        tokio::time::advance(Duration::from_millis(1500)).await;
        receive(&recorder, "{}");
        recorder.clone().record(Direction::ClientToServer, Bytes::from_static(b"x"));
        let frames = recorder.since(0);
        assert_eq!(frames.iter().map(|frame| frame.at.as_millis()).collect::<Vec<_>>(), [1500, 1500]);
        assert_eq!((recorder.end(), recorder.since(1).len(), recorder.since(9).len()), (2, 1, 0));
    }

    #[tokio::test]
    async fn dropped_frames_keep_their_numbers_and_answers_are_still_found() {
        let recorder = TraceRecorder::with_limit(2);
        let id = Id::from(7);
        let mut early = pin!(recorder.wait_for_response(0, by_id(&id)));
        assert!(early.as_mut().now_or_never().is_none());
        for _ in 0..5 {
            receive(&recorder, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        }
        receive(&recorder, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        assert_eq!((recorder.end(), recorder.since(0).len(), recorder.since(5).len()), (6, 2, 1));
        assert_eq!(early.await.map(|matched| matched.index), Some(5));
        assert_eq!(recorder.find_response(0, by_id(&id)).map(|matched| matched.index), Some(5));
        let (index, _) = recorder.wait_for(1, |_| true).await.expect("a frame");
        assert_eq!(index, 4);
    }

    #[test]
    fn an_attempt_keeps_no_more_than_the_connection() {
        let connection = TraceRecorder::with_limit(2);
        let attempt = connection.attempt();
        for _ in 0..5 {
            receive(&attempt, "{}");
        }
        assert_eq!((attempt.end(), attempt.since(0).len(), connection.since(0).len()), (5, 2, 2));
    }

    #[tokio::test]
    async fn a_waiter_sees_old_and_new_frames_once_each() {
        let recorder = TraceRecorder::new();
        receive(&recorder, "0");
        receive(&recorder, "1");
        let mut shown = Vec::new();
        {
            let mut waiting = pin!(recorder.wait_for(1, |frame| {
                shown.push(frame.bytes.clone());
                frame.bytes == "3"
            }));
            assert!(waiting.as_mut().now_or_never().is_none());
            receive(&recorder, "2");
            assert!(waiting.as_mut().now_or_never().is_none());
            receive(&recorder, "3");
            let (index, frame) = waiting.await.expect("a frame");
            assert_eq!((index, &frame.bytes[..]), (3, &b"3"[..]));
        }
        assert_eq!(shown, ["1", "2", "3"]);
    }

    #[tokio::test]
    async fn closing_ends_every_wait_and_keeps_the_first_reason() {
        let recorder = TraceRecorder::new();
        let (mut any, id) = (pin!(recorder.wait_for(0, |_| false)), Id::from(1));
        let mut answer = pin!(recorder.wait_for_response(0, by_id(&id)));
        assert!(any.as_mut().now_or_never().is_none() && answer.as_mut().now_or_never().is_none());
        recorder.close("gone");
        recorder.close("later");
        assert!(any.await.is_none() && answer.await.is_none());
        assert_eq!(recorder.closed().as_deref(), Some("gone"));
        assert!(recorder.wait_for_response(0, by_id(&id)).await.is_none());
    }

    #[tokio::test]
    async fn an_answer_is_found_by_its_id_before_and_after_it_came() {
        let recorder = TraceRecorder::new();
        let id = Id::from(7);
        let mut early = pin!(recorder.wait_for_response(0, by_id(&id)));
        assert!(early.as_mut().now_or_never().is_none());
        receive(&recorder, r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        receive(&recorder, r#"{"jsonrpc":"2.0","id":"7","result":{}}"#);
        assert!(early.as_mut().now_or_never().is_none(), "neither a request nor another type of id answers");
        recorder.record(Direction::ClientToServer, Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"result":1}"#));
        receive(&recorder, r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#);
        let batch = &br#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#[..];
        assert_eq!(early.await.expect("an answer").frame.bytes, batch);
        assert_eq!(recorder.wait_for_response(0, by_id(&id)).await.expect("an answer").frame.bytes, batch);
        assert!(recorder.find_response(recorder.end(), by_id(&id)).is_none());
    }

    #[tokio::test]
    async fn an_invalid_answer_with_a_readable_id_is_an_answer() {
        let recorder = TraceRecorder::new();
        receive(&recorder, r#"{"jsonrpc":"1.0","id":7,"result":{}}"#);
        assert!(recorder.wait_for_response(0, by_id(&Id::from(7))).await.is_some());
    }

    #[tokio::test]
    async fn an_unsolicited_frame_answers_the_only_request_that_accepts_it() {
        let recorder = TraceRecorder::new();
        let (one, two) = (Id::from(1), Id::from(2));
        let any = |id| ResponseFilter { id: Some(id), unaddressed: false, unsolicited: AcceptUnsolicited::Any };
        recorder.record(Direction::ClientToServer, Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#));
        let mut first = pin!(recorder.wait_for_response(0, any(&one)));
        {
            let mut second = pin!(recorder.wait_for_response(0, any(&two)));
            assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
            receive(&recorder, "between two");
            assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        }
        receive(&recorder, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        assert!(first.as_mut().now_or_never().is_none());
        receive(&recorder, "for one");
        let matched = first.await.expect("an answer");
        assert_eq!((&matched.frame.bytes[..], matched.index), (&b"for one"[..], 3));
        assert!(matches!(matched.unsolicited, Some(UnsolicitedFrame::NotAMessage { .. })));
        assert_eq!(
            recorder.wait_for_response(0, any(&two)).await.expect("an answer").index,
            1,
            "the first one that is here"
        );
        assert!(recorder.find_response(0, by_id(&one)).is_none());
    }

    #[tokio::test]
    async fn invalid_messages_can_be_ignored_without_other_unsolicited_frames() {
        let recorder = TraceRecorder::new();
        let id = Id::from(1);
        let wanted = ResponseFilter { id: Some(&id), unaddressed: false, unsolicited: AcceptUnsolicited::Responses };
        let mut waiting = pin!(recorder.wait_for_response(0, wanted));
        assert!(waiting.as_mut().now_or_never().is_none());
        receive(&recorder, "starting…");
        assert!(waiting.as_mut().now_or_never().is_none());
        receive(&recorder, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
        assert!(matches!(waiting.await.expect("an answer").unsolicited, Some(UnsolicitedFrame::UnknownId(_))));
    }

    #[tokio::test]
    async fn a_response_answers_only_its_request_and_an_error_without_an_id_only_on_demand() {
        let recorder = TraceRecorder::new();
        let id = Id::from(2);
        for id in 1..3 {
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#);
            recorder.record(Direction::ClientToServer, request.into());
        }
        receive(&recorder, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        receive(&recorder, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(
            recorder
                .find_response(
                    0,
                    ResponseFilter { id: Some(&id), unaddressed: true, unsolicited: AcceptUnsolicited::Any }
                )
                .is_none()
        );
        receive(&recorder, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#);
        assert!(recorder.find_response(0, by_id(&id)).is_none());
        let found = recorder
            .find_response(0, ResponseFilter { id: None, unaddressed: true, unsolicited: AcceptUnsolicited::None })
            .expect("an error");
        assert!(matches!(found.unsolicited, Some(UnsolicitedFrame::ErrorWithoutId(error)) if error.code == -32700));
    }
}
