//! What happened on one connection, in order: the evidence that every judge works from.
//!
//! Client and mock record the same events, each from its side; neither interprets them.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::{Closed, Direction, Frame, MAX_FRAME};
use crate::Transport;

/// How many bytes a bounded trace keeps: a frame of any size, and its surroundings.
const MAX_BYTES: usize = 2 * MAX_FRAME;
/// How much of standard error a trace of a beginning keeps besides: a server may write more there than messages.
const STDERR_ROOM: Stderr = Stderr { lines: 2000, bytes: 256 << 10 };

/// Something that happened on a connection.
#[derive(Clone, Debug)]
pub struct Event {
    /// Time since the trace began.
    pub at: Duration,
    /// The number of the HTTP exchange that the event belongs to: a request with its response and its body. Numbers are
    /// unique in a trace. `None` without HTTP, and where the recorder does not tell exchanges apart.
    pub exchange: Option<u32>,
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// The client connected.
    Opened(Transport),
    /// A message, or bytes where a message was expected.
    Frame(Frame),
    /// The head of an HTTP request; on the client's side only the headers that the client sets itself.
    HttpRequest {
        method: Method,
        /// Path and query.
        target: String,
        headers: HeaderMap,
    },
    /// The head of an HTTP response.
    HttpResponse { status: StatusCode, headers: HeaderMap },
    /// An HTTP body that is not a message, or its beginning.
    HttpBody { direction: Direction, bytes: Bytes },
    /// The HTTP response ended; not whole if the connection broke.
    HttpEnd { is_whole: bool },
    /// The next frame or HTTP request of the client, in the same exchange if it has one, is this case of a probe. If
    /// another case or the end follows, it was not sent: the connection had ended.
    Case(Arc<str>),
    /// Something happened to the server's process.
    Process(ProcessEvent),
    /// A line that the server's process wrote to its standard error, without its newline.
    Stderr(Bytes),
    /// No more frames will come.
    Closed(Closed),
}

/// What happens to the process of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessEvent {
    /// It was started.
    Started { pid: u32 },
    /// The client closed its standard input.
    InputClosed,
    /// It got SIGTERM.
    Terminated,
    /// It has ended and left other processes behind, which got SIGTERM.
    LeftBehind,
    /// It ended, with its exit code unless a signal ended it.
    Exited { code: Option<i32> },
}

/// The events of one connection. Each has a number, which stays the same when earlier events are dropped.
///
/// ```
/// use std::time::Duration;
///
/// use bytes::Bytes;
/// use rehearse_protocol::{Direction, EventKind, Trace};
/// use rehearse_protocol::Transport;
///
/// let mut trace = Trace::default();
/// trace.push(Duration::ZERO, EventKind::Opened(Transport::Stdio));
/// let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// trace.push_frame(Duration::from_millis(2), Direction::ClientToServer, ping);
/// assert_eq!(trace.frames().count(), 1);
/// assert_eq!(trace.end(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    events: VecDeque<Event>,
    /// How many events were dropped before the first one.
    dropped: usize,
    /// How many events are kept; all if `None`.
    limit: Option<usize>,
    /// The bytes of the events that are kept.
    bytes: usize,
    /// How many bytes are kept at most, if what comes after them is dropped.
    room: Option<usize>,
    /// Whether events were dropped after the last one.
    is_full: bool,
    /// The lines of standard error that are kept, and how many were dropped, if they have a room of their own.
    stderr: Stderr,
    lost_stderr: usize,
}

/// Lines of standard error.
#[derive(Clone, Copy, Debug, Default)]
struct Stderr {
    lines: usize,
    bytes: usize,
}

impl EventKind {
    fn len(&self) -> usize {
        match self {
            EventKind::Frame(Frame { bytes, .. }) | EventKind::HttpBody { bytes, .. } | EventKind::Stderr(bytes) => {
                bytes.len()
            }
            _ => 0,
        }
    }
}

impl Event {
    /// About how much memory it takes.
    pub fn size(&self) -> usize {
        let headers = match &self.kind {
            EventKind::HttpRequest { headers, .. } | EventKind::HttpResponse { headers, .. } => headers,
            kind => return size_of::<Event>() + kind.len(),
        };
        size_of::<Event>() + headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>()
    }

    /// The frame, if the event is one.
    pub fn frame(&self) -> Option<&Frame> {
        match &self.kind {
            EventKind::Frame(frame) => Some(frame),
            _ => None,
        }
    }
}

impl Trace {
    /// A trace that drops all but the last `limit` events (at least one), and earlier ones if they exceed 64 MiB.
    pub fn bounded(limit: usize) -> Trace {
        Trace { limit: Some(limit.max(1)), ..Trace::default() }
    }

    /// A trace that drops what comes after `limit` events, or after so many bytes: it is the beginning of what happened.
    /// Standard error has a room of its own.
    pub fn beginning(limit: usize, bytes: usize) -> Trace {
        Trace { limit: Some(limit), room: Some(bytes), ..Trace::default() }
    }

    /// An empty trace with the limit of this one.
    #[must_use]
    pub fn new_empty(&self) -> Trace {
        Trace { limit: self.limit, room: self.room, ..Trace::default() }
    }

    /// Whether events were dropped after the last one.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// How many lines of standard error had no room.
    pub fn lost_stderr(&self) -> usize {
        self.lost_stderr
    }

    /// The bytes of the events that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The size of the largest frame that the trace can keep.
    pub fn largest(&self) -> usize {
        self.room.map_or(MAX_FRAME, |room| room.min(MAX_FRAME))
    }

    /// Adds an event.
    pub fn push(&mut self, at: Duration, kind: EventKind) {
        self.push_event(Event { at, exchange: None, kind });
    }

    /// Adds an event that may belong to an HTTP exchange.
    pub fn push_event(&mut self, event: Event) {
        if let Some(room) = self.room {
            if let EventKind::Stderr(line) = &event.kind {
                let Stderr { lines, bytes } = &mut self.stderr;
                match *lines < STDERR_ROOM.lines && *bytes + line.len() <= STDERR_ROOM.bytes {
                    true => {
                        (*lines, *bytes) = (*lines + 1, *bytes + line.len());
                        self.events.push_back(event);
                    }
                    false => self.lost_stderr += 1,
                }
                return;
            }
            let count = self.events.len() - self.stderr.lines;
            let fits = self.bytes + event.kind.len() <= room && Some(count) < self.limit;
            self.is_full |= !fits;
            if self.is_full {
                return;
            }
        }
        self.bytes += event.kind.len();
        self.events.push_back(event);
        // A trace with a room keeps its beginning.
        let Some(limit) = self.limit.filter(|_| self.room.is_none()) else { return };
        while self.events.len() > limit || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.kind.len());
            self.dropped += 1;
        }
    }

    /// Adds a frame.
    pub fn push_frame(&mut self, at: Duration, direction: Direction, bytes: Bytes) {
        self.push(at, EventKind::Frame(Frame::new(direction, at, bytes)));
    }

    /// The number of the first event that is kept.
    pub fn start(&self) -> usize {
        self.dropped
    }

    /// The number of the next event.
    pub fn end(&self) -> usize {
        self.dropped + self.events.len()
    }

    /// The events that are kept.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter()
    }

    /// The events from a number on, as far as they are kept, with their numbers.
    pub fn since(&self, number: usize) -> impl Iterator<Item = (usize, &Event)> {
        (self.dropped..).zip(&self.events).skip(number.saturating_sub(self.dropped))
    }

    /// The transport of the connection, if it was opened.
    pub fn transport(&self) -> Option<Transport> {
        self.events().find_map(|event| match event.kind {
            EventKind::Opened(transport) => Some(transport),
            _ => None,
        })
    }

    /// The frames that are kept.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.events.iter().filter_map(Event::frame)
    }

    /// The frames from a number on, as far as they are kept, with their numbers.
    pub fn frames_since(&self, number: usize) -> impl Iterator<Item = (usize, &Frame)> {
        self.since(number).filter_map(|(number, event)| Some((number, event.frame()?)))
    }

    /// The frames before a number, as far as they are kept.
    pub fn frames_before(&self, number: usize) -> impl Iterator<Item = &Frame> {
        self.events.iter().take(number.saturating_sub(self.dropped)).filter_map(Event::frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(trace: &mut Trace, size: usize) {
        trace.push_frame(Duration::ZERO, Direction::ServerToClient, Bytes::from(vec![b'x'; size]));
    }

    #[test]
    fn a_bounded_trace_is_bounded_in_events_and_in_bytes() {
        let mut trace = Trace::bounded(3);
        (0..4).for_each(|_| add(&mut trace, 1));
        assert_eq!((trace.start(), trace.end()), (1, 4));
        add(&mut trace, MAX_BYTES - 1);
        assert_eq!((trace.start(), trace.end()), (3, 5));
        add(&mut trace, MAX_BYTES + 1);
        assert_eq!((trace.start(), trace.end(), trace.bytes), (5, 6, MAX_BYTES + 1), "the last one is always kept");
        let mut all = Trace::default();
        (0..2).for_each(|_| add(&mut all, MAX_BYTES));
        assert_eq!(all.frames().count(), 2);
    }

    #[test]
    fn a_trace_of_the_beginning_drops_what_comes_later() {
        let mut trace = Trace::beginning(3, 10);
        add(&mut trace, 10);
        assert!(!trace.is_full());
        add(&mut trace, 1);
        trace.push(Duration::ZERO, EventKind::Opened(Transport::Stdio));
        assert_eq!((trace.start(), trace.end(), trace.bytes(), trace.is_full()), (0, 1, 10, true));
        let mut trace = trace.new_empty();
        (0..4).for_each(|_| add(&mut trace, 1));
        assert_eq!((trace.start(), trace.end(), trace.is_full()), (0, 3, true));
        assert_eq!((trace.largest(), Trace::bounded(3).largest()), (10, MAX_FRAME));
    }

    #[test]
    fn standard_error_has_a_room_of_its_own() {
        let mut trace = Trace::beginning(3, 10);
        let line = || EventKind::Stderr(Bytes::from(vec![b'x'; 100]));
        (0..STDERR_ROOM.lines + 5).for_each(|_| trace.push(Duration::ZERO, line()));
        add(&mut trace, 10);
        assert_eq!((trace.frames().count(), trace.is_full(), trace.bytes(), trace.lost_stderr()), (1, false, 10, 5));
        let mut trace = Trace::default();
        (0..STDERR_ROOM.lines + 5).for_each(|_| trace.push(Duration::ZERO, line()));
        assert_eq!((trace.end(), trace.lost_stderr()), (STDERR_ROOM.lines + 5, 0), "a trace without a room keeps all");
    }

    #[test]
    fn frames_keep_their_numbers_among_other_events() {
        let mut trace = Trace::default();
        trace.push(Duration::ZERO, EventKind::Opened(Transport::Stdio));
        add(&mut trace, 1);
        trace.push(Duration::ZERO, EventKind::Stderr(Bytes::from_static(b"starting")));
        add(&mut trace, 2);
        let numbers =
            |from| trace.frames_since(from).map(|(number, frame)| (number, frame.bytes.len())).collect::<Vec<_>>();
        assert_eq!(numbers(0), [(1, 1), (3, 2)]);
        assert_eq!(numbers(2), [(3, 2)]);
        assert_eq!(trace.frames_before(3).count(), 1);
        assert_eq!(trace.since(1).count(), 3);
    }
}
