//! What comes back for a message.

use std::time::Duration;

use rehearse_conformance::without_mark;
use rehearse_protocol::{Direction, Event, Frame};
use serde_json::Value;
use tokio::time::Instant;

use super::{LEAST_WAIT, ProbeConnection};

/// What every message has.
const MARK: &[u8] = b"\"jsonrpc\"";

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// The response, if one came.
    pub(crate) message: Option<Value>,
}

impl Answer {
    pub(crate) fn result(&self) -> Option<&Value> {
        self.message.as_ref()?.get("result")
    }

    pub(crate) fn into_result(self) -> Option<Value> {
        self.message?.get_mut("result").map(Value::take)
    }
}

impl ProbeConnection {
    /// Waits for the response with this id, or in this exchange, among the events from `read` on, and meanwhile answers the
    /// server's requests. Over a pipe an error without an id is taken for it if none follows so soon: it may be about
    /// something else.
    pub(super) async fn wait_for_answer(
        &mut self,
        mut read: usize,
        limit: Duration,
        id: Option<&Value>,
        exchange: Option<u32>,
        settles: Duration,
    ) -> Option<Frame> {
        let mut end = Instant::now() + limit;
        let (mut anonymous, mut has_stray) = (None, false);
        loop {
            self.answer_requests().await;
            let recorder = self.wire.recorder();
            let events = recorder.read(&mut read);
            if let Some(frame) = answer_among(&events, id, exchange) {
                return Some(frame);
            }
            if exchange.is_none() && !has_stray {
                has_stray = events.iter().filter_map(Event::frame).any(|frame| self.is_stray(frame));
                if has_stray {
                    end = end.min(Instant::now() + LEAST_WAIT);
                }
            }
            if anonymous.is_none() && exchange.is_none() {
                anonymous = answer_among(&events, None, None);
                if anonymous.is_some() {
                    end = end.min(Instant::now() + settles);
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            // A server that sends without end would be read without end.
            if left.is_zero() || self.is_over_limit() {
                return anonymous;
            }
            if self.replied < read {
                continue;
            }
            if !matches!(tokio::time::timeout(left, recorder.has_more(read)).await, Ok(true)) {
                return anonymous;
            }
        }
    }

    /// Whether a frame was meant as an answer and is that of no request: it cannot be read, or nothing was sent with its id.
    fn is_stray(&self, frame: &Frame) -> bool {
        if frame.direction != Direction::ServerToClient {
            return false;
        }
        // Another line may be a log.
        if !frame.bytes.windows(MARK.len()).any(|part| part == MARK) {
            return false;
        }
        let Some(message) = parse(frame) else { return true };
        let is_sent = || {
            let frames = self.wire.recorder().since(self.wire.recorder().start());
            frames.iter().any(|sent| {
                let sent = parse(sent).filter(|_| sent.direction == Direction::ClientToServer);
                sent.is_some_and(|sent| sent.get("id").is_some_and(|id| is_answer(frame, Some(id))))
            })
        };
        message.get("method").is_none() && (message.get("result").is_some() || has_id(&message)) && !is_sent()
    }
}

/// The first answer to the request of this id. Over HTTP what has no id answers only the request of its own exchange.
pub(super) fn answer_among(events: &[Event], id: Option<&Value>, exchange: Option<u32>) -> Option<Frame> {
    let is_found = |event: &Event, frame: &Frame| {
        let is_anonymous = (id.is_none() || exchange.is_some()) && is_answer(frame, None);
        (id.is_some() && is_answer(frame, id)) || (is_anonymous && (exchange.is_none() || event.exchange == exchange))
    };
    let mut answers = events.iter().filter_map(|event| Some((event, event.frame()?)));
    answers.find(|(event, frame)| is_found(event, frame)).map(|(_, frame)| frame.clone())
}

/// Whether a frame answers the request of this id, of whichever type; without one, whether it is an error without an id.
pub(super) fn is_answer(frame: &Frame, id: Option<&Value>) -> bool {
    if frame.direction != Direction::ServerToClient {
        return false;
    }
    let Some(message) = parse(frame) else { return false };
    if message.get("method").is_some() {
        return false;
    }
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned);
    let own = message.get("id").filter(|id| !id.is_null());
    match (own, id) {
        (Some(own), Some(id)) => text(own) == text(id),
        (None, Some(_)) => false,
        (None, None) => message.get("error").is_some(),
        (Some(_), None) => message.is_array(),
    }
}

/// Whether a frame answers some request.
pub(super) fn is_response(frame: &Frame) -> bool {
    frame.direction == Direction::ServerToClient && parse(frame).is_some_and(|it| it.get("method").is_none())
}

pub(super) fn has_id(message: &Value) -> bool {
    message.get("id").is_some_and(|id| !id.is_null())
}

pub(super) fn parse(frame: &Frame) -> Option<Value> {
    serde_json::from_str(&String::from_utf8_lossy(without_mark(&frame.bytes))).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use rehearse_protocol::EventKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_no_id_answers_only_in_its_exchange() {
        let event = |exchange, text: &'static str| {
            let (direction, bytes) = (Direction::ServerToClient, Bytes::from_static(text.as_bytes()));
            let kind = EventKind::Frame(Frame::new(direction, Duration::ZERO, bytes));
            Event { at: Duration::ZERO, exchange: Some(exchange), kind }
        };
        let refused = event(4, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}"#);
        let resumed = event(5, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
        let events = [refused, resumed];
        let found = |id: Option<Value>, exchange| answer_among(&events, id.as_ref(), Some(exchange)).is_some();
        assert!(found(None, 4) && !found(None, 6), "a DELETE waits for its own end");
        assert!(found(Some(json!(7)), 6), "the answer to a request may come on a resumed stream");
        assert!(found(Some(json!(8)), 4) && !found(Some(json!(8)), 6));
    }
}
