//! How requests are answered.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{Entry, JournalEvent};

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The mock has answered.
    Answered {
        /// What the answer is.
        outcome: AnswerKind,
        /// Why it is an error, if the mock and not the script says so.
        reason: Option<String>,
    },
    /// The client has cancelled the request.
    Cancelled,
    /// The connection, the session or the mock ended before the answer.
    Abandoned,
}

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerKind {
    /// A result.
    Result,
    /// A result of a tool with `isError`.
    ToolError,
    /// A JSON-RPC error.
    Error,
    /// The requests of the mock to the client (2026-07-28).
    InputRequired,
    /// A task, which continues.
    Task,
    /// The bytes of a `raw` reply.
    Raw,
    /// The exit of the mock.
    Exit,
}

impl AnswerKind {
    /// The name in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            AnswerKind::Result => "result",
            AnswerKind::ToolError => "toolError",
            AnswerKind::Error => "error",
            AnswerKind::InputRequired => "inputRequired",
            AnswerKind::Task => "task",
            AnswerKind::Raw => "raw",
            AnswerKind::Exit => "exit",
        }
    }
}

impl Answer {
    /// An answer without a reason.
    pub(crate) fn of(outcome: AnswerKind) -> Answer {
        Answer::Answered { outcome, reason: None }
    }

    /// `answered`, `cancelled` or `abandoned`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Answer::Answered { .. } => "answered",
            Answer::Cancelled => "cancelled",
            Answer::Abandoned => "abandoned",
        }
    }

    /// What the answer is, if there is one.
    pub fn outcome(&self) -> Option<AnswerKind> {
        match self {
            Answer::Answered { outcome, .. } => Some(*outcome),
            _ => None,
        }
    }

    /// Why it is an error.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Answer::Answered { reason, .. } => reason.as_deref(),
            _ => None,
        }
    }
}

/// The mark of a call that the client has cancelled. Clones belong to the same call.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelMark(Arc<AtomicBool>);

impl CancelMark {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The entry of a call that is being answered. Dropping it journals that there is no answer.
#[derive(Debug)]
pub(crate) struct CallRecord {
    pub(super) answer: Arc<OnceLock<Answer>>,
    pub(super) cancelled: CancelMark,
    /// The entry for the follower of the journal, and whether it was sent.
    pub(super) follower: Option<(std::sync::mpsc::SyncSender<JournalEvent>, Entry, bool)>,
}

impl CallRecord {
    pub(crate) fn mark(&self) -> CancelMark {
        self.cancelled.clone()
    }

    /// The call takes time: the follower is told about it before its end.
    pub(crate) fn begin(&mut self) {
        if let Some((follower, entry, is_sent)) = self.follower.as_mut().filter(|(.., is_sent)| !is_sent) {
            let _ = follower.send(JournalEvent::Received(Entry { answer: Arc::default(), ..entry.clone() }));
            *is_sent = true;
        }
    }

    /// The end of the call; later ones are ignored.
    pub(crate) fn end(&mut self, answer: impl FnOnce() -> Answer, at: Duration) {
        if self.answer.get().is_some() || self.answer.set(answer()).is_err() {
            return;
        }
        if let Some((follower, entry, is_sent)) = self.follower.take() {
            let event = if is_sent { JournalEvent::Answered(entry, at) } else { JournalEvent::Received(entry) };
            let _ = follower.send(event);
        }
    }

    /// The end of a call without an answer.
    pub(crate) fn drop_at(&mut self, at: Duration) {
        let is_cancelled = self.cancelled.0.load(Ordering::Relaxed);
        self.end(|| if is_cancelled { Answer::Cancelled } else { Answer::Abandoned }, at);
    }
}
