//! Those that wait for the answer to a message, and which frames they accept.

use tokio::sync::oneshot;

use super::{State, UnsolicitedDetector, UnsolicitedFrame};
use rehearse_protocol::{Direction, Frame, Id, MessageHead, ParseError};

pub(super) struct Waiter {
    pub(super) id: Option<Id>,
    pub(super) unaddressed: bool,
    pub(super) unsolicited: AcceptUnsolicited,
    pub(super) matched: oneshot::Sender<MatchedFrame>,
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

impl ResponseFilter<'_> {
    /// The response with this id only.
    pub fn of(id: &Id) -> ResponseFilter<'_> {
        ResponseFilter { id: Some(id), unaddressed: false, unsolicited: AcceptUnsolicited::None }
    }
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

impl State {
    /// Delivers a frame that is about to be recorded to its waiters.
    pub(super) fn deliver(&mut self, frame: &Frame) {
        let (index, is_alone) = (self.trace.end(), self.awaited.len() == 1);
        let ids = response_ids(frame);
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

    pub(super) fn find(&self, from: usize, wanted: ResponseFilter<'_>, is_alone: bool) -> Option<MatchedFrame> {
        let wanted = ResponseFilter { unsolicited: wanted.unsolicited.for_waiter(is_alone), ..wanted };
        let mut frames =
            self.trace.frames_since(from).filter(|(_, frame)| frame.direction == Direction::ServerToClient);
        frames.find_map(|(index, frame)| {
            let match_kind = self.match_kind(index, frame, &response_ids(frame), wanted)?;
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
        let head = frame.head();
        let is_none = || matches!(head, Err(ParseError::NotJson(_)));
        if ids.is_empty() && matches!(head, Ok(MessageHead::Request { .. } | MessageHead::Notification { .. }))
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
fn response_ids(frame: &Frame) -> Vec<Id> {
    match frame.head() {
        Ok(MessageHead::Response { id }) | Err(ParseError::Invalid { id, .. }) => id.iter().cloned().collect(),
        Err(ParseError::Batch) => frame.parts().unwrap_or_default().iter().flat_map(response_ids).collect(),
        _ => Vec::new(),
    }
}
