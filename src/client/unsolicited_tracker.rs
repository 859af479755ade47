//! What a server sent that belongs to nothing.

use std::collections::HashSet;

use super::Session;
use crate::{
    transport::{AcceptUnsolicited, TraceRecorder, UnsolicitedDetector, UnsolicitedFrame},
    wire::{Direction, Frame, Message, ParseError},
};

/// Which frames of a session have been looked at, and which of them are known to be unsolicited but have been taken for the
/// answer to a request.
#[derive(Debug, Default)]
pub(super) struct UnsolicitedTracker {
    detector: UnsolicitedDetector,
    next: usize,
    /// Whether frames were forgotten before they were looked at.
    has_gap: bool,
    taken: HashSet<usize>,
    ignored: UnsolicitedPolicy,
}

/// What belongs to nothing and is passed over, so that a request waits on for its proper answer. Whatever is not passed
/// over is taken for the answer by a request that waits alone, which fails at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsolicitedPolicy {
    #[default]
    FailOnAny,
    /// What is no message, such as the lines that some servers log to their standard output.
    IgnoreOutput,
    /// Also answers to requests that nobody made.
    IgnoreAll,
}

impl UnsolicitedTracker {
    /// After a handshake. Whatever JSON was answered to a `server/discover` that was followed by an `initialize` is forgiven:
    /// it led to it.
    pub(super) fn after(recorder: &TraceRecorder) -> UnsolicitedTracker {
        let initialized = |frame: &Frame| {
            let is_initialize = |message: Message<'_>| message.method() == Some("initialize");
            frame.direction == Direction::ClientToServer && frame.message().is_ok_and(is_initialize)
        };
        let frames = recorder.numbered_since(0);
        let before = frames.iter().rposition(|(_, frame)| initialized(frame)).unwrap_or(0);
        let is_noise = |frame: &Frame| matches!(frame.message(), Err(ParseError::NotJson(_)));
        let forgiven = frames[..before].iter().filter(|(_, frame)| !is_noise(frame));
        let taken = forgiven.map(|(index, _)| *index).collect();
        UnsolicitedTracker { taken, ..UnsolicitedTracker::default() }
    }
}

impl Session {
    /// What has come since the last call, or since the connection was opened, that is no message, or answers nothing. A
    /// request that waited alone has taken such a frame for its answer, and failed; it is not among these.
    pub fn take_unsolicited(&self) -> Vec<UnsolicitedFrame> {
        let mut tracker = self.unsolicited_tracker();
        let mut found = Vec::new();
        let frames = self.recorder().numbered_since(tracker.next);
        tracker.has_gap |= frames.first().is_some_and(|(index, _)| *index > tracker.next);
        for (index, frame) in frames {
            tracker.next = index + 1;
            let unsolicited = tracker.detector.observe(&frame);
            // Whose request has been forgotten cannot be known.
            let unsolicited = unsolicited
                .filter(|unsolicited| !(tracker.has_gap && matches!(unsolicited, UnsolicitedFrame::UnknownId(_))));
            found.extend(unsolicited.filter(|_| !tracker.taken.remove(&index)));
        }
        found
    }

    /// Says what is passed over from now on.
    pub fn set_unsolicited_policy(&self, ignored: UnsolicitedPolicy) {
        self.unsolicited_tracker().ignored = ignored;
    }

    /// What is taken for an answer.
    pub(super) fn accept_unsolicited(&self) -> AcceptUnsolicited {
        match self.unsolicited_tracker().ignored {
            UnsolicitedPolicy::FailOnAny => AcceptUnsolicited::Any,
            UnsolicitedPolicy::IgnoreOutput => AcceptUnsolicited::Responses,
            UnsolicitedPolicy::IgnoreAll => AcceptUnsolicited::None,
        }
    }

    /// Marks a frame as one that has been an answer.
    pub(super) fn take(&self, index: usize) {
        self.unsolicited_tracker().taken.insert(index);
    }

    /// Marks all frames from an index on.
    pub(super) fn take_since(&self, from: usize) {
        let end = self.recorder().len();
        self.unsolicited_tracker().taken.extend(from..end);
    }
}
