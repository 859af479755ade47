//! One request: sent by rmcp, answered from the recorder.

use std::time::Duration;

use rmcp::{
    ServiceError,
    model::{ClientRequest, CustomRequest, MetaObject, NumberOrString, RequestId, RequestMetaObject},
    service::PeerRequestOptions,
};
use serde_json::{Map, Value, value::RawValue};

use super::{
    CallOptions, Failure, Session, call_options::wait_cancelled, sent_request::SentRequest, stderr::stderr_excerpt,
};
use crate::recorder::{MatchedFrame, ResponseFilter};
use rehearse_protocol::{Frame, Id, Message, ParseError, Version, message::split_batch};

const EXIT_PATIENCE: Duration = Duration::from_millis(500);

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
        let mut sent = self.send(method, params, options.meta).await?;
        tokio::select! {
            biased;
            outcome = self.outcome(&mut sent) => {
                self.set_overdue(false);
                outcome
            }
            () = wait_cancelled(options.cancel) => {
                sent.abandon("cancelled by the user").await;
                Err(Failure::Cancelled)
            }
            () = deadline.wait() => {
                self.set_overdue(true);
                sent.abandon("timeout").await;
                Err(Failure::Timeout(limit))
            }
        }
    }

    /// Sends a request, with what the session adds to the `_meta` of each.
    ///
    /// # Errors
    /// It could not be sent.
    pub(super) async fn send(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        meta: Option<Map<String, Value>>,
    ) -> Result<SentRequest, Failure> {
        let from = self.recorder().end();
        let active = self.handler().start_request(method);
        let meta = match self.log_level_meta() {
            None => meta,
            Some(mut own) => {
                own.extend(meta.unwrap_or_default());
                Some(own)
            }
        };
        let mut with = PeerRequestOptions::no_options();
        with.meta = meta.map(|meta| RequestMetaObject(MetaObject(meta)));
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, params.map(Value::Object)));
        match self.peer().send_cancellable_request(request, with).await {
            Ok(handle) => Ok(SentRequest { id: wire_id(&handle.id), from, handle, _active: active }),
            Err(error) => Err(self.failed(error).await),
        }
    }

    /// The result of a request that has been sent. Cancel-safe.
    ///
    /// # Errors
    /// Any [`Failure`] but a timeout and a cancellation.
    pub(super) async fn outcome(&self, sent: &mut SentRequest) -> Result<Box<RawValue>, Failure> {
        let SentRequest { handle, id, from, .. } = sent;
        let wanted = ResponseFilter { id: Some(id), unaddressed: false, unsolicited: self.accept_unsolicited() };
        tokio::select! {
            biased;
            arrival = self.recorder().wait_for_response(*from, wanted) => match arrival {
                Some(arrival) => self.accept(arrival, id),
                None => Err(self.disconnected().await),
            },
            outcome = &mut handle.rx => match (self.recorder().find_response(*from, wanted), outcome) {
                (Some(arrival), _) => self.accept(arrival, id),
                (None, outcome) => {
                    // rmcp has already turned these frames into an error.
                    self.take_since(*from);
                    match outcome {
                        Ok(Ok(_)) => Err(Failure::Malformed(format!("the answer carries another type of id than {id}"))),
                        Ok(Err(error)) => Err(self.failed(error).await),
                        Err(_) => Err(self.disconnected().await),
                    }
                }
            },
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

    async fn failed(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::TransportClosed => self.disconnected().await,
            error => self.with_exit_details(Failure::from_service(error)).await,
        }
    }

    /// A lost connection or response stream, with the reason if it is known.
    pub(super) async fn disconnected(&self) -> Failure {
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

pub(super) fn wire_id(id: &RequestId) -> Id {
    match id {
        NumberOrString::Number(number) => Id::from(*number),
        NumberOrString::String(text) => Id::String((**text).into()),
    }
}
