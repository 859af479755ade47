//! The parts of HTTP exchanges that are not frames.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::{State, TraceRecorder};
use crate::wire::Frame;

/// A part of an HTTP exchange that is not a frame.
#[derive(Clone, Debug)]
pub enum HttpPart {
    /// The head of a request, with the headers that the client sets.
    Request {
        method: Method,
        /// Path and query.
        target: String,
        headers: HeaderMap,
    },
    /// The head of a response.
    Response { status: StatusCode, headers: HeaderMap },
    /// The start of a response body that is not a message.
    Body(Bytes),
    /// The body of a request that is not a message.
    Sent(Bytes),
}

/// An entry of the record of a connection.
#[derive(Clone, Debug)]
pub enum TraceEntry {
    Frame(Frame),
    Http {
        /// Time since the connection was opened.
        at: Duration,
        part: HttpPart,
    },
}

impl TraceEntry {
    /// Time since the connection was opened.
    pub fn at(&self) -> Duration {
        match self {
            TraceEntry::Frame(frame) => frame.at,
            TraceEntry::Http { at, .. } => *at,
        }
    }
}

/// A position in the record of a connection; the start by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPosition {
    frames: usize,
    parts: usize,
}

/// The last parts of HTTP exchanges, and how many came before them.
#[derive(Default)]
pub(super) struct Parts {
    kept: VecDeque<Part>,
    dropped: usize,
}

struct Part {
    at: Duration,
    /// The index of the frame that it precedes.
    before: usize,
    part: HttpPart,
}

impl TraceRecorder {
    /// Records HTTP parts from now on as well.
    #[must_use]
    pub fn with_http(self) -> TraceRecorder {
        self.state().http.get_or_insert_default();
        self
    }

    /// Adds an HTTP part, if they are recorded.
    pub(crate) fn note_http(&self, part: impl FnOnce() -> HttpPart) {
        let mut state = self.state();
        let at = self.0.opened.elapsed();
        let (before, most) = (state.frames.end(), state.frames.kept());
        let Some(http) = &mut state.http else { return };
        http.kept.push_back(Part { at, before, part: part() });
        if most.is_some_and(|most| http.kept.len() > most) {
            http.kept.pop_front();
            http.dropped += 1;
        }
        drop(state);
        self.0.changed.send_replace(());
    }

    /// The entries after a position, in order; moves the position to the end.
    pub fn entries(&self, read: &mut ReadPosition) -> Vec<TraceEntry> {
        let state = self.state();
        let (first, frames) = (read.frames.max(state.frames.start()), state.frames.since(read.frames));
        let parts = state.http.iter().flat_map(|http| http.kept.iter().skip(read.parts.saturating_sub(http.dropped)));
        let mut parts = parts.peekable();
        let mut entries = Vec::with_capacity(frames.len());
        let http = |part: &Part| TraceEntry::Http { at: part.at, part: part.part.clone() };
        for (index, frame) in (first..).zip(frames) {
            while let Some(part) = parts.next_if(|part| part.before <= index) {
                entries.push(http(part));
            }
            entries.push(TraceEntry::Frame(frame));
        }
        entries.extend(parts.map(http));
        *read = state.position();
        entries
    }

    /// The end of the record so far.
    pub fn position(&self) -> ReadPosition {
        self.state().position()
    }

    /// Waits for an entry after a position; false if the connection has closed without one. Cancel-safe.
    pub async fn has_more(&self, read: ReadPosition) -> bool {
        let mut changed = self.0.changed.subscribe();
        loop {
            let (place, closed) = {
                let state = self.state();
                (state.position(), state.closed.is_some())
            };
            if !read.reaches(place) {
                return true;
            }
            if closed || changed.changed().await.is_err() {
                return false;
            }
        }
    }
}

impl ReadPosition {
    /// Whether this position is not before the other one.
    pub fn reaches(self, other: ReadPosition) -> bool {
        self.frames >= other.frames && self.parts >= other.parts
    }
}

impl State {
    fn position(&self) -> ReadPosition {
        let parts = self.http.as_ref().map_or(0, |http| http.dropped + http.kept.len());
        ReadPosition { frames: self.frames.end(), parts }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;
    use crate::wire::Direction;

    fn body(recorder: &TraceRecorder, text: &'static str) {
        recorder.note_http(|| HttpPart::Body(Bytes::from_static(text.as_bytes())));
    }

    fn frame(recorder: &TraceRecorder, text: &'static str) {
        recorder.record(Direction::ClientToServer, Bytes::from_static(text.as_bytes()));
    }

    fn texts(entries: &[TraceEntry]) -> Vec<String> {
        let text = |entry: &TraceEntry| match entry {
            TraceEntry::Frame(frame) => String::from_utf8_lossy(&frame.bytes).into_owned(),
            TraceEntry::Http { part: HttpPart::Body(body), .. } => String::from_utf8_lossy(body).into_owned(),
            TraceEntry::Http { part, .. } => format!("{part:?}"),
        };
        entries.iter().map(text).collect()
    }

    #[test]
    fn what_http_says_stands_among_the_frames_where_it_was_said() {
        let (recorder, mut read) = (TraceRecorder::new().with_http(), ReadPosition::default());
        body(&recorder, "a");
        frame(&recorder, "1");
        frame(&recorder, "2");
        body(&recorder, "b");
        assert_eq!(texts(&recorder.entries(&mut read)), ["a", "1", "2", "b"]);
        assert!(read.reaches(recorder.position()) && recorder.entries(&mut read).is_empty());
        body(&recorder, "c");
        frame(&recorder, "3");
        assert!(!read.reaches(recorder.position()));
        assert_eq!(texts(&recorder.entries(&mut read)), ["c", "3"]);
        assert_eq!(recorder.since(0).len(), 3, "the frames are what they were");
    }

    #[test]
    fn what_http_says_is_kept_only_on_demand_and_as_long_as_frames_are() {
        let (recorder, mut read) = (TraceRecorder::new(), ReadPosition::default());
        recorder.note_http(|| unreachable!("nobody wants it"));
        assert!(recorder.entries(&mut read).is_empty());
        let recorder = TraceRecorder::with_limit(2).with_http();
        for text in ["a", "b", "c"] {
            body(&recorder, text);
        }
        let mut read = ReadPosition { frames: 0, parts: 1 };
        assert_eq!(texts(&recorder.entries(&mut read)), ["b", "c"]);
        assert_eq!(read, ReadPosition { frames: 0, parts: 3 });
    }

    #[tokio::test]
    async fn a_reader_is_woken_by_both_and_by_the_end() {
        let (recorder, mut read) = (TraceRecorder::new().with_http(), ReadPosition::default());
        for add in [body, frame] {
            let mut more = pin!(recorder.has_more(read));
            assert!(more.as_mut().now_or_never().is_none());
            add(&recorder, "x");
            assert!(more.await);
            recorder.entries(&mut read);
        }
        recorder.close("gone");
        assert!(!recorder.has_more(read).await);
    }
}
