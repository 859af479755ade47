//! Raw frames on the connection of a session.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::{Failure, HeaderChange, Session};
use crate::wire::{Direction, Frame, Id, Message, Response};

/// What came back after a raw frame.
#[derive(Clone, Debug, Default)]
pub struct RawReply {
    /// The HTTP status, on transports that have one.
    pub status: Option<u16>,
    /// What the server sent from then on, up to the answer. Frames of other requests may be among them.
    pub frames: Vec<Frame>,
    /// The response with the id of the frame, or else the first error without an id.
    pub answer: Option<Frame>,
    /// The body of an HTTP answer that is no event stream.
    pub body: Bytes,
}

impl Session {
    /// Sends the bytes as they are, valid or not, and waits for what answers them: the response with their id if they
    /// have one, else the first error without an id. Over streamable HTTP the end of the HTTP answer ends the wait, and
    /// `headers` change those that go with the session. A server that stays silent until the timeout is an `Ok` without
    /// an answer.
    ///
    /// # Errors
    /// [`Failure::Disconnected`], [`Failure::Malformed`] for a header that cannot be sent, and [`Failure::Timeout`] if
    /// not even the bytes got through, or no HTTP status came back.
    pub async fn raw(&self, bytes: Bytes, headers: &[HeaderChange], timeout: Duration) -> Result<RawReply, Failure> {
        let (deadline, from) = (Instant::now() + timeout, self.tap().len());
        let id = match Message::parse(&bytes) {
            Ok(Message::Request(request)) => Some(request.id),
            Err(error) => error.id().cloned(),
            Ok(_) => None,
        };
        let sent = match timeout_at(deadline, self.sender().send(bytes, headers)).await {
            Ok(sent) => sent.map_err(|error| Failure::from_link(&error))?,
            Err(_) => return Err(Failure::Timeout(timeout)),
        };
        let mut reply = RawReply { status: sent.status, body: sent.body, ..RawReply::default() };
        let answered = async {
            let answers = |frame: &Frame| answers(frame, id.as_ref());
            let Some(answer) = sent.answer else {
                let accepted = reply.status.is_none_or(|status| (200..300).contains(&status));
                return if accepted { self.tap().wait_for(from, answers).await } else { None };
            };
            let body = answer.finish();
            tokio::pin!(body);
            tokio::select! {
                body = &mut body => {
                    reply.body = body;
                    None
                }
                found = self.tap().wait_for(from, answers) => found,
            }
        };
        let found = timeout_at(deadline, answered).await.ok().flatten();
        let found = found.or_else(|| {
            let frames = self.tap().since(from).into_iter().enumerate();
            frames.map(|(index, frame)| (from + index, frame)).find(|(_, frame)| answers(frame, id.as_ref()))
        });
        let end = found.as_ref().map_or(usize::MAX, |(index, _)| index + 1 - from);
        let frames = self.tap().since(from).into_iter().take(end);
        reply.frames = frames.filter(|frame| frame.direction == Direction::ServerToClient).collect();
        reply.answer = found.map(|(_, frame)| frame);
        if reply.answer.is_none() && reply.status.is_none() && self.tap().closed().is_some() {
            return Err(self.disconnected().await);
        }
        Ok(reply)
    }
}

fn answers(frame: &Frame, id: Option<&Id>) -> bool {
    frame.direction == Direction::ServerToClient
        && match frame.message() {
            Ok(Message::Response(Response { id: None, outcome })) => outcome.is_err(),
            Ok(Message::Response(response)) => response.id.as_ref() == id,
            Ok(_) => false,
            Err(error) => id.is_some() && error.id() == id,
        }
}
