//! Raw frames on the connection of a session.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::Session;
use crate::{
    connection::sender::MessageSender,
    recorder::{MatchedFrame, ResponseFilter, UnsolicitedFrame},
    result::Failure,
    transport::{Authorization, HeaderChange, WireError, WireExchange},
};
use rehearse_protocol::{Direction, Frame, Message};

/// What came back after a raw frame.
#[derive(Clone, Debug, Default)]
pub struct RawReply {
    /// The HTTP status, on transports that have one.
    pub status: Option<u16>,
    /// What the server sent from then on, up to the answer. Frames of other requests may be among them.
    pub frames: Vec<Frame>,
    /// The response with the id of the frame, an error without an id, or an unsolicited frame.
    pub answer: Option<Frame>,
    /// Why the answer is unsolicited, if it does not have the id.
    pub unsolicited: Option<UnsolicitedFrame>,
    /// The body of an HTTP response that is not an event stream.
    pub body: Bytes,
}

/// A raw frame that has been sent.
#[derive(Default)]
struct SentFrame {
    /// The HTTP status, on transports that have one.
    status: Option<u16>,
    /// The body of a refused POST of HTTP+SSE.
    body: Bytes,
    /// The response over streamable HTTP.
    exchange: Option<WireExchange>,
}

impl Session {
    /// Sends the bytes as they are, valid or not, and waits for their answer: the response with their id, an error
    /// without an id, or an unsolicited frame while no other request waits. Over streamable HTTP the end of the
    /// response ends the wait, and `headers` change those of the session. A server that stays silent until the timeout
    /// is an `Ok` without an answer.
    ///
    /// # Errors
    /// [`Failure::Disconnected`], [`Failure::Malformed`] for a header that cannot be sent, and [`Failure::Timeout`] if
    /// the bytes could not be sent or no HTTP status arrived.
    pub async fn raw(&self, bytes: Bytes, headers: &[HeaderChange], timeout: Duration) -> Result<RawReply, Failure> {
        let (deadline, from) = (Instant::now() + timeout, self.recorder().end());
        let id = match Message::parse(&bytes) {
            Ok(Message::Request(request)) => Some(request.id),
            Err(error) => error.id().cloned(),
            Ok(_) => None,
        };
        let sent = match timeout_at(deadline, self.send_raw(bytes, headers)).await {
            Ok(sent) => sent.map_err(Failure::from_wire)?,
            Err(_) => return Err(Failure::Timeout(timeout.into())),
        };
        let mut reply = RawReply { status: sent.status, body: sent.body, ..RawReply::default() };
        let wanted = ResponseFilter { id: id.as_ref(), unaddressed: true, unsolicited: self.accept_unsolicited() };
        let answered = async {
            let Some(exchange) = sent.exchange else {
                let accepted = reply.status.is_none_or(|status| (200..300).contains(&status));
                return if accepted { self.recorder().wait_for_response(from, wanted).await } else { None };
            };
            tokio::select! {
                response = exchange.response() => {
                    reply.body = response.map(|response| response.body.into_bytes()).unwrap_or_default();
                    None
                }
                found = self.recorder().wait_for_response(from, wanted) => found,
            }
        };
        let found = timeout_at(deadline, answered).await.ok().flatten();
        let found = found.or_else(|| self.recorder().find_response(from, wanted));
        let last = found.as_ref().map_or(usize::MAX, |found| found.index);
        if let Some(MatchedFrame { index, unsolicited: Some(_), .. }) = found {
            self.take(index);
        }
        let frames = self.recorder().numbered_since(from).into_iter().filter(|(index, _)| *index <= last);
        reply.frames =
            frames.map(|(_, frame)| frame).filter(|frame| frame.direction == Direction::ServerToClient).collect();
        if let Some(MatchedFrame { frame, unsolicited, .. }) = found {
            reply.answer = Some(frame);
            reply.unsolicited = unsolicited;
        }
        if reply.answer.is_none() && reply.status.is_none() && self.recorder().closed().is_some() {
            return Err(self.disconnected().await);
        }
        Ok(reply)
    }

    /// Sends the bytes; over HTTP it waits for the status of the response.
    async fn send_raw(&self, bytes: Bytes, headers: &[HeaderChange]) -> Result<SentFrame, WireError> {
        match &self.connection().sender {
            MessageSender::Frames(outgoing) => match outgoing.send(bytes).await {
                Ok(status) => Ok(SentFrame { status, ..SentFrame::default() }),
                Err(WireError::Status { status, body }) => {
                    Ok(SentFrame { status: Some(status), body: body.into(), exchange: None })
                }
                Err(error) => Err(error),
            },
            MessageSender::Http(session) => {
                let mut exchange = session.begin_post(bytes, headers, Authorization::Current)?;
                match exchange.head().await {
                    Some(head) => {
                        let status = Some(head.status.as_u16());
                        Ok(SentFrame { status, body: Bytes::new(), exchange: Some(exchange) })
                    }
                    None => exchange.response().await.and(Err(WireError::Closed)),
                }
            }
        }
    }
}
