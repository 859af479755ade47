//! Why a model has no answer.

use std::time::Duration;

/// The error of a request to a model. It never has a key or the text of the conversation in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider answered with an error.
    #[error("{}: HTTP {status}{}{message}", .endpoint, if .message.is_empty() { "" } else { ": " })]
    Rejected {
        /// The URL of the request.
        endpoint: String,
        status: u16,
        message: String,
        /// When the provider wants the next try.
        retry_after: Option<Duration>,
    },
    /// The provider cannot be reached, or the connection broke.
    #[error("{endpoint}: {why}")]
    Unreachable { endpoint: String, why: String },
    /// There was no answer in time.
    #[error("{endpoint}: no answer within {}", humantime(*.limit))]
    TimedOut { endpoint: String, limit: Duration },
    /// The answer is not one of this API.
    #[error("{endpoint}: the answer is not one of this API: {why}")]
    Malformed { endpoint: String, why: String },
    /// The API cannot take a part of the request.
    #[error("{endpoint}: this API does not take {what}")]
    Unsupported { endpoint: String, what: String },
    /// No rule of a scripted model matches the conversation.
    #[error("{script}: no rule matches turn {turn} ({last})")]
    NoRule { script: String, turn: usize, last: String },
    /// Nothing is recorded for the request, and the provider cannot be asked.
    #[error("the answer of {model} is not recorded (run {run}): {why}; {missing}")]
    NotRecorded { model: String, run: u32, why: String, missing: String },
    /// A recorded answer cannot be read or written.
    #[error("cannot use the recorded answer {path}: {why}")]
    RecordedAnswer { path: String, why: String },
    /// All requests together have taken as much as they may.
    #[error("the budget is used up: {what}")]
    Budget { what: String },
    /// A template of a scripted model failed.
    #[error("{script}: {why}")]
    Script { script: String, why: String },
}

impl ModelError {
    /// The error of the last try. That nothing can be reached says little about why, so the first error is named too.
    pub(super) fn after(self, first: Option<&ModelError>) -> ModelError {
        let (ModelError::Unreachable { endpoint, why }, Some(first)) = (&self, first) else { return self };
        let first = first.to_string();
        let first = first.strip_prefix(&format!("{endpoint}: ")).unwrap_or(&first);
        if first == why {
            return self;
        }
        ModelError::Unreachable { endpoint: endpoint.clone(), why: format!("{why} (the first try: {first})") }
    }

    /// Whether the same request may succeed later: the provider is busy (408, 409, 429, 5xx) or could not be reached.
    pub fn is_temporary(&self) -> bool {
        match self {
            ModelError::Rejected { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            ModelError::Unreachable { .. } | ModelError::TimedOut { .. } => true,
            ModelError::Malformed { .. }
            | ModelError::Unsupported { .. }
            | ModelError::NoRule { .. }
            | ModelError::NotRecorded { .. }
            | ModelError::RecordedAnswer { .. }
            | ModelError::Budget { .. }
            | ModelError::Script { .. } => false,
        }
    }
}

fn humantime(limit: Duration) -> String {
    match limit.subsec_millis() {
        0 => format!("{} s", limit.as_secs()),
        _ => format!("{} ms", limit.as_millis()),
    }
}
