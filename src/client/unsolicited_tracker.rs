//! Finds the unsolicited frames of a session.

use std::collections::HashSet;

use super::Session;
use crate::{
    transport::{AcceptUnsolicited, TraceRecorder, UnsolicitedDetector, UnsolicitedFrame},
    wire::{Direction, Frame, Message, ParseError},
};

/// Which frames have been checked, and which unsolicited frames a request has taken for its answer.
#[derive(Debug, Default)]
pub(super) struct UnsolicitedTracker {
    detector: UnsolicitedDetector,
    next: usize,
    /// Whether frames were dropped before they were checked.
    has_gap: bool,
    taken: HashSet<usize>,
    ignored: UnsolicitedPolicy,
}

/// What a request does about unsolicited frames: it ignores them and waits for its response, or, if no other request
/// waits, takes them for its answer and fails at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnsolicitedPolicy {
    #[default]
    FailOnAny,
    /// Ignores what is not a message, such as log lines on standard output.
    IgnoreOutput,
    /// Also ignores responses to unknown requests.
    IgnoreAll,
}

impl UnsolicitedTracker {
    /// A tracker for a session after its handshake. Any JSON that answered a `server/discover` before the fallback to
    /// `initialize` is accepted, because it led to the fallback.
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
    /// The unsolicited frames since the last call, without those that a request has taken for its answer.
    pub fn take_unsolicited(&self) -> Vec<UnsolicitedFrame> {
        let mut tracker = self.unsolicited_tracker();
        let mut found = Vec::new();
        let frames = self.recorder().numbered_since(tracker.next);
        tracker.has_gap |= self.recorder().start() > tracker.next;
        for (index, frame) in frames {
            tracker.next = index + 1;
            let unsolicited = tracker.detector.observe(&frame);
            // Their requests may be among the frames that were dropped.
            let unsolicited = unsolicited
                .filter(|unsolicited| !(tracker.has_gap && matches!(unsolicited, UnsolicitedFrame::UnknownId(_))));
            found.extend(unsolicited.filter(|_| !tracker.taken.remove(&index)));
        }
        found
    }

    /// Sets the policy from now on.
    pub fn set_unsolicited_policy(&self, ignored: UnsolicitedPolicy) {
        self.unsolicited_tracker().ignored = ignored;
    }

    /// Which unsolicited frames a request takes for its answer.
    pub(super) fn accept_unsolicited(&self) -> AcceptUnsolicited {
        match self.unsolicited_tracker().ignored {
            UnsolicitedPolicy::FailOnAny => AcceptUnsolicited::Any,
            UnsolicitedPolicy::IgnoreOutput => AcceptUnsolicited::Responses,
            UnsolicitedPolicy::IgnoreAll => AcceptUnsolicited::None,
        }
    }

    /// Marks a frame as the answer of a request.
    pub(super) fn take(&self, index: usize) {
        self.unsolicited_tracker().taken.insert(index);
    }

    /// Marks all frames from an index on as answers.
    pub(super) fn take_since(&self, from: usize) {
        let end = self.recorder().end();
        self.unsolicited_tracker().taken.extend(from..end);
    }
}
