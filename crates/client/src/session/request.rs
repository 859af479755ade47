//! One request: sent, and answered from the recorder.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, value::RawValue};

use super::{CallOptions, Session, call_options::wait_cancelled};
use crate::{
    connection::{EXIT_PATIENCE, sent_request::SentRequest},
    recorder::{MatchedFrame, ResponseFilter},
    result::{FLOOD, Failure, Overdue},
    transport::{WireError, stderr::stderr_excerpt},
};
use rehearse_protocol::{Direction, Frame, Id, Message, MessageHead, ParseError, Version, message::split_batch};

impl Session {
    /// Makes any request once and returns the result as it came.
    ///
    /// On a timeout or cancellation the server is notified: with `notifications/cancelled`, or on modern streamable
    /// HTTP by closing the response stream (2026-07-28, Cancellation). Dropping the future sends no notification.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn request(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        let limit = options.timeout.unwrap_or(self.timeouts().call);
        let deadline = self.deadline(limit);
        let received = self.recorder().received();
        let mut sent = self.send(method, params, options.meta);
        tokio::select! {
            biased;
            outcome = self.outcome(&mut sent) => {
                self.set_overdue(false);
                sent.finish();
                if let (Ok(result), "tools/list") = (&outcome, method) {
                    self.connection().exchange.lock().read_tools(result);
                }
                outcome
            }
            () = wait_cancelled(options.cancel) => {
                sent.abandon("cancelled by the user").await;
                Err(Failure::Cancelled)
            }
            () = deadline.wait() => {
                self.set_overdue(true);
                sent.abandon("timeout").await;
                Err(self.overdue(limit, received))
            }
        }
    }

    /// Sends a request, with what the session adds to the `_meta` of each.
    pub(crate) fn send(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        meta: Option<Map<String, Value>>,
    ) -> SentRequest {
        let meta = match self.log_level_meta() {
            None => meta,
            Some(mut own) => {
                own.extend(meta.unwrap_or_default());
                Some(own)
            }
        };
        self.connection().send(method, params, meta)
    }

    /// The result of a request that has been sent. Cancel-safe.
    ///
    /// # Errors
    /// Any [`Failure`] but a timeout and a cancellation.
    pub(crate) async fn outcome(&self, sent: &mut SentRequest) -> Result<Box<RawValue>, Failure> {
        let (id, from) = (sent.id.clone(), sent.from);
        let wanted = ResponseFilter { unsolicited: self.accept_unsolicited(), ..ResponseFilter::of(&id) };
        let sent = tokio::select! {
            biased;
            arrival = self.recorder().wait_for_response(from, wanted) => {
                let Some(arrival) = arrival else { return Err(self.disconnected().await) };
                // A message in a body of another media type is no answer.
                if sent.head().is_some_and(|head| head.status.is_success() && head.has_whole_body())
                    && let Err(error) = sent.sent().await
                {
                    return Err(Failure::from_wire(error));
                }
                return self.accept(arrival, &id);
            }
            sent = sent.sent() => sent,
        };
        if let Some(arrival) = self.recorder().find_response(from, wanted) {
            return self.accept(arrival, &id);
        }
        // These frames are the answer of the exchange, whatever ids they have.
        self.take_since(from);
        match sent {
            Ok(Some(message)) => Err(unaddressed(&message, &id)),
            Ok(None) | Err(WireError::Closed) => Err(self.disconnected().await),
            Err(error) => Err(self.with_exit_details(Failure::from_wire(error)).await),
        }
    }

    fn accept(&self, arrival: MatchedFrame, id: &Id) -> Result<Box<RawValue>, Failure> {
        let Some(unsolicited) = arrival.unsolicited else { return self.read(&arrival.frame, id) };
        self.take(arrival.index);
        Err(Failure::from_unsolicited(unsolicited))
    }

    fn read(&self, answer: &Frame, id: &Id) -> Result<Box<RawValue>, Failure> {
        let message = match answer.message() {
            Err(ParseError::Batch) if self.info().version.known() == Some(Version::V2025_03_26) => {
                let parts = split_batch(&answer.bytes).unwrap_or_default();
                return match parts.iter().find_map(|part| outcome(Message::parse(part).ok()?, id)) {
                    Some(outcome) => outcome,
                    None => Err(Failure::Malformed("an invalid message in a batch".to_owned())),
                };
            }
            message => message.map_err(|error| Failure::Malformed(error.to_string()))?,
        };
        outcome(message, id).unwrap_or_else(|| Err(Failure::Malformed("no response".to_owned())))
    }

    /// A request without an answer in time, before which so many messages had come. Answers to others are no flood.
    pub(crate) fn overdue(&self, limit: Duration, received: u64) -> Failure {
        let messages = self.recorder().received() - received;
        if messages < FLOOD {
            return Failure::Timeout(limit.into());
        }
        let (mut answers, mut last) = (0, None);
        let frames = self.recorder().since(self.recorder().start());
        let came = frames.iter().rev().filter(|frame| frame.direction == Direction::ServerToClient);
        for frame in came.take(usize::try_from(messages).unwrap_or(usize::MAX)) {
            match frame.head() {
                Ok(MessageHead::Response { .. }) => answers += 1,
                Ok(MessageHead::Request { method, .. } | MessageHead::Notification { method }) => {
                    last.get_or_insert_with(|| method.clone());
                }
                Err(_) => {}
            }
        }
        Failure::Timeout(Overdue::with_messages(limit, messages - answers, last.as_deref()))
    }

    /// A lost connection or response stream, with the reason if it is known.
    pub(crate) async fn disconnected(&self) -> Failure {
        let detail = self
            .recorder()
            .closed()
            .map_or_else(|| "the stream ended before the answer".to_owned(), |why| why.to_string());
        self.with_exit_details(Failure::Disconnected { detail }).await
    }

    /// Adds the exit status and last output of the process, if it ended.
    async fn with_exit_details(&self, failure: Failure) -> Failure {
        match (failure, self.child()) {
            (Failure::Disconnected { detail }, Some(child)) => {
                let (status, lines) = child.exit_details(EXIT_PATIENCE).await;
                let status = status.map(|status| format!("; the process ended with {status}")).unwrap_or_default();
                Failure::Disconnected { detail: format!("{detail}{status}{}", stderr_excerpt(&lines)) }
            }
            (failure, _) => failure,
        }
    }
}

fn outcome(message: Message<'_>, id: &Id) -> Option<Result<Box<RawValue>, Failure>> {
    match message {
        Message::Response(response) if response.id.as_ref() == Some(id) => {
            Some(response.outcome.map(ToOwned::to_owned).map_err(Failure::Rpc))
        }
        _ => None,
    }
}

/// What a body says that does not answer the request of its exchange by its id.
fn unaddressed(body: &Bytes, id: &Id) -> Failure {
    match Message::parse(body) {
        Ok(Message::Response(response)) => match (response.id, response.outcome) {
            (None, Err(error)) => Failure::Rpc(error),
            (other, _) => {
                let other = other.map(|id| id.to_json()).unwrap_or_default();
                Failure::Malformed(format!("the body answers request {other} instead of request {}", id.to_json()))
            }
        },
        Ok(_) => Failure::Malformed("the body is not a response".to_owned()),
        Err(error) => Failure::Malformed(format!("the body is not a message: {error}")),
    }
}
