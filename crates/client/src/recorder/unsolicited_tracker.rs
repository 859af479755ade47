//! Finds the unsolicited frames of a session.

use std::collections::HashSet;

use crate::recorder::{ClientRecorder, UnsolicitedDetector};
use rehearse_protocol::{Direction, Frame, MessageHead, ParseError};

/// Which frames have been checked, and which unsolicited frames a request has taken for its answer.
#[derive(Debug, Default)]
pub(crate) struct UnsolicitedTracker {
    pub(crate) detector: UnsolicitedDetector,
    pub(crate) next: usize,
    /// Whether frames were dropped before they were checked.
    pub(crate) has_gap: bool,
    pub(crate) taken: HashSet<usize>,
    pub(crate) ignored: UnsolicitedPolicy,
}

/// What a request does about unsolicited frames: it ignores them and waits for its response, or, if no other request
/// waits, takes them for its answer and fails at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnsolicitedPolicy {
    #[default]
    /// Takes any unsolicited frame for its answer.
    FailOnAny,
    /// Ignores what is not a message, such as log lines on standard output.
    IgnoreOutput,
    /// Also ignores responses to unknown requests.
    IgnoreAll,
}

impl UnsolicitedTracker {
    /// A tracker for a session after its handshake. Any JSON that answered a `server/discover` before the fallback to
    /// `initialize` is accepted, because it led to the fallback.
    pub(crate) fn from_handshake(recorder: &ClientRecorder) -> UnsolicitedTracker {
        let initialized = |frame: &Frame| {
            let is_initialize =
                matches!(frame.head(), Ok(MessageHead::Request { method, .. }) if **method == *"initialize");
            frame.direction == Direction::ClientToServer && is_initialize
        };
        let frames = recorder.numbered_since(0);
        let before = frames.iter().rposition(|(_, frame)| initialized(frame)).unwrap_or(0);
        let is_noise = |frame: &Frame| matches!(frame.head(), Err(ParseError::NotJson(_)));
        let forgiven = frames[..before].iter().filter(|(_, frame)| !is_noise(frame));
        let taken = forgiven.map(|(index, _)| *index).collect();
        UnsolicitedTracker { taken, ..UnsolicitedTracker::default() }
    }
}
