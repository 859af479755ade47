//! What a server sent that belongs to nothing.

use std::collections::HashSet;

use super::Session;
use crate::{
    transport::{Admitted, Stray, Strays, Tap},
    wire::{Direction, Frame, Message, ParseError},
};

/// Which frames of a session have been looked at, and which of them are known to be stray but have been taken for the
/// answer to a request.
#[derive(Debug, Default)]
pub(super) struct Judged {
    strays: Strays,
    next: usize,
    taken: HashSet<usize>,
    ignored: Ignored,
}

/// What belongs to nothing and is passed over, so that a request waits on for its proper answer. Whatever is not passed
/// over is taken for the answer by a request that waits alone, which fails at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    #[default]
    Nothing,
    /// What is no message, such as the lines that some servers log to their standard output.
    Noise,
    /// Also answers to requests that nobody made.
    Everything,
}

impl Judged {
    /// After a handshake. Whatever JSON was answered to a `server/discover` that was followed by an `initialize` is forgiven:
    /// it led to it.
    pub(super) fn after(tap: &Tap) -> Judged {
        let initialized = |frame: &Frame| {
            let is_initialize = |message: Message<'_>| message.method() == Some("initialize");
            frame.direction == Direction::ClientToServer && frame.message().is_ok_and(is_initialize)
        };
        let frames = tap.numbered_since(0);
        let before = frames.iter().rposition(|(_, frame)| initialized(frame)).unwrap_or(0);
        let is_noise = |frame: &Frame| matches!(frame.message(), Err(ParseError::NotJson(_)));
        let forgiven = frames[..before].iter().filter(|(_, frame)| !is_noise(frame));
        let taken = forgiven.map(|(index, _)| *index).collect();
        Judged { taken, ..Judged::default() }
    }
}

impl Session {
    /// What has come since the last call, or since the connection was opened, that is no message, or answers nothing. A
    /// request that waited alone has taken such a frame for its answer, and failed; it is not among these.
    pub fn strays(&self) -> Vec<Stray> {
        let mut judged = self.judged();
        let mut found = Vec::new();
        for (index, frame) in self.tap().numbered_since(judged.next) {
            judged.next = index + 1;
            let stray = judged.strays.show(&frame);
            found.extend(stray.filter(|_| !judged.taken.remove(&index)));
        }
        found
    }

    /// Says what is passed over from now on.
    pub fn ignore(&self, ignored: Ignored) {
        self.judged().ignored = ignored;
    }

    /// What is taken for an answer.
    pub(super) fn admitted(&self) -> Admitted {
        match self.judged().ignored {
            Ignored::Nothing => Admitted::Anything,
            Ignored::Noise => Admitted::Answers,
            Ignored::Everything => Admitted::Nothing,
        }
    }

    /// Marks a frame as one that has been an answer.
    pub(super) fn take(&self, index: usize) {
        self.judged().taken.insert(index);
    }

    /// Marks all frames from an index on.
    pub(super) fn take_since(&self, from: usize) {
        let end = self.tap().len();
        self.judged().taken.extend(from..end);
    }
}
