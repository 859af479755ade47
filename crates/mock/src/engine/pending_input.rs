//! Input that an exchange waits for, and the state that a client carries from one round to the next.

use std::time::Duration;

use bytes::Bytes;
use futures_channel::oneshot;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{catalog::CallCounts, input_response::InputResponse};
use rehearse_protocol::{Id, message};

/// Sent input requests, of which some are not answered yet.
#[derive(Debug)]
pub(super) struct PendingInput {
    /// The position of the step with the input requests.
    pub(super) step: usize,
    pub(super) limit: Duration,
    pub(super) open: Vec<OpenRequest>,
    /// Whether [`Event::Await`] was returned.
    pub(super) awaited: bool,
    /// Whether an answer can never come.
    pub(super) is_lost: bool,
}

#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) name: String,
    /// The id of the request, if the input request is one.
    pub(super) id: Option<Id>,
    pub(super) receiver: oneshot::Receiver<InputResponse>,
    pub(super) answer: Option<InputResponse>,
}

/// The state that a client carries from one round of a call to the next, signed (2026-07-28, Multi Round-Trip Requests:
/// Server Requirements).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RequestState {
    /// The generation of the catalog.
    pub(super) generation: u64,
    /// The number and the label of the rule that answers.
    pub(super) item: usize,
    pub(super) rule: usize,
    pub(super) label: String,
    pub(super) counts: CallCounts,
    /// The step with the input requests.
    pub(super) next: usize,
    pub(super) answers: Vec<(String, Json)>,
    /// The digest of the request.
    pub(super) digest: String,
    /// When the state expires, in milliseconds since the mock was started.
    pub(super) expires: u64,
}

impl PendingInput {
    /// One refusal decides; the other answers are not waited for.
    pub(super) fn is_refused(&self) -> bool {
        self.open.iter().any(|open| matches!(open.answer, Some(Err(_))))
    }

    /// The cancellations of the sent requests that are not answered.
    pub(super) fn cancellations<'a>(&'a self, reason: &'a str) -> impl Iterator<Item = Bytes> + 'a {
        let open = self.open.iter().filter(|open| open.answer.is_none()).filter_map(|open| open.id.as_ref());
        open.map(move |id| {
            let params = json!({ "requestId": id, "reason": reason }).to_string();
            message::notification("notifications/cancelled", &params)
        })
    }
}
