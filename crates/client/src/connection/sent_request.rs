//! A request that has been sent.

use std::{future::pending, time::Duration};

use bytes::Bytes;
use futures_util::future::FutureExt;
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::sync::DropGuard;

use super::sender::{MessageSender, Sending};
use crate::{
    exchange::Exchange,
    transport::{ResponseHead, WireError},
};
use rehearse_protocol::{Era, Id};

/// How long to wait until a cancellation is sent. It is queued by then, and is sent even without the wait.
const CANCELLATION: Duration = Duration::from_millis(500);
/// How long an HTTP response may go on after its message, so that its socket can be used again.
const LINGER: Duration = Duration::from_millis(200);

/// A request without an answer so far.
pub(crate) struct SentRequest {
    pub(crate) id: Id,
    /// The index of the first frame that can be its answer.
    pub(crate) from: usize,
    sender: MessageSender,
    /// Writes the request, over HTTP until its response has ended; `None` once nothing more can come of it.
    sending: Option<JoinHandle<Result<Option<Bytes>, WireError>>>,
    /// The head of the HTTP response.
    head: Option<watch::Receiver<Option<ResponseHead>>>,
    failed: Option<WireError>,
    _cause: Option<DropGuard>,
}

impl SentRequest {
    pub(crate) fn new(
        id: Id,
        from: usize,
        sending: Sending,
        sender: MessageSender,
        cause: Option<DropGuard>,
    ) -> SentRequest {
        let Sending { sent: mut sending, head } = sending;
        let (sending, failed) = match &sender {
            MessageSender::Http(_) => (Some(tokio::spawn(sending)), None),
            // Most frames are written at once.
            MessageSender::Frames(_) => match (&mut sending).now_or_never() {
                Some(Ok(_)) => (None, None),
                Some(Err(error)) => (None, Some(error)),
                None => (Some(tokio::spawn(sending)), None),
            },
        };
        SentRequest { id, from, sender, sending, head, failed, _cause: cause }
    }

    /// The message that an HTTP response brought, or `None` at the end of its stream; over other transports the answer is
    /// only among the frames, and this waits for ever. Cancel-safe.
    ///
    /// # Errors
    /// Why the request could not be sent, or why it can have no answer.
    pub(crate) async fn sent(&mut self) -> Result<Option<Bytes>, WireError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(sending) = &mut self.sending else { return pending().await };
        let sent = sending.await.unwrap_or(Err(WireError::Closed));
        self.sending = None;
        match (&self.sender, sent) {
            (MessageSender::Frames(_), Ok(_)) => pending().await,
            (_, sent) => sent,
        }
    }

    /// The head of the HTTP response, if it has come; always before a message of it.
    pub(crate) fn head(&self) -> Option<ResponseHead> {
        self.head.as_ref().and_then(|head| head.borrow().clone())
    }

    /// Lets the response end by itself, after its message has come.
    pub(crate) fn finish(mut self) {
        if let (MessageSender::Http(_), Some(mut sending)) = (&self.sender, self.sending.take()) {
            tokio::spawn(async move {
                if timeout(LINGER, &mut sending).await.is_err() {
                    sending.abort();
                }
            });
        }
    }

    /// Cancels the request at the server: with `notifications/cancelled`, or on modern streamable HTTP by closing the
    /// response (2026-07-28, Cancellation).
    pub(crate) async fn abandon(self, reason: &str) {
        if self.sender.http().is_some_and(|http| http.era() == Era::Modern) {
            return;
        }
        let cancellation = Exchange::cancellation(&self.id, reason);
        let cancelling = self.sender.send(Some("notifications/cancelled"), cancellation).sent;
        let _ = timeout(CANCELLATION, tokio::spawn(cancelling)).await;
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        // A frame that is being written is written to its end.
        if let (MessageSender::Http(_), Some(sending)) = (&self.sender, &self.sending) {
            sending.abort();
        }
    }
}
