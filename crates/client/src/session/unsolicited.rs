//! The unsolicited frames of a session.

use super::Session;
use crate::recorder::{AcceptUnsolicited, UnsolicitedFrame, UnsolicitedPolicy};

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
    pub(crate) fn accept_unsolicited(&self) -> AcceptUnsolicited {
        match self.unsolicited_tracker().ignored {
            UnsolicitedPolicy::FailOnAny => AcceptUnsolicited::Any,
            UnsolicitedPolicy::IgnoreOutput => AcceptUnsolicited::Responses,
            UnsolicitedPolicy::IgnoreAll => AcceptUnsolicited::None,
        }
    }

    /// Marks a frame as the answer of a request.
    pub(crate) fn take(&self, index: usize) {
        self.unsolicited_tracker().taken.insert(index);
    }

    /// Marks all frames from an index on as answers.
    pub(crate) fn take_since(&self, from: usize) {
        let end = self.recorder().end();
        self.unsolicited_tracker().taken.extend(from..end);
    }
}
