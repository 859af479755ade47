//! Frames of a server that are neither a request, a notification nor the response to a request.

use std::{collections::HashMap, fmt};

use rehearse_protocol::{Direction, Frame, Id, Message, MessageHead, ParseError, RpcError};

/// How many characters of a frame are quoted.
const EXCERPT: usize = 200;

/// Why a frame of the server is unsolicited.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum UnsolicitedFrame {
    /// It is not a message, for the reason `why`, and has no id of a request.
    NotAMessage {
        /// The reason.
        why: String,
        /// The start of the frame.
        text: String,
    },
    /// A response to an id that no request has.
    UnknownId(Id),
    /// A second response to a request.
    DuplicateResponse(Id),
    /// An error without an id.
    ErrorWithoutId(RpcError),
}

/// Detects the unsolicited frames of a connection; it must observe every frame in order.
#[derive(Debug, Default)]
pub(crate) struct UnsolicitedDetector {
    /// How many responses are due for each id.
    asked: HashMap<Id, usize>,
}

impl UnsolicitedDetector {
    /// Why the frame is unsolicited, if it is.
    pub(crate) fn observe(&mut self, frame: &Frame) -> Option<UnsolicitedFrame> {
        match frame.direction {
            Direction::ClientToServer => {
                for id in requested(frame) {
                    *self.asked.entry(id).or_default() += 1;
                }
                None
            }
            Direction::ServerToClient => self.classify(frame),
        }
    }

    fn classify(&mut self, frame: &Frame) -> Option<UnsolicitedFrame> {
        let text = || String::from_utf8_lossy(&frame.bytes).into_owned();
        let no_message = |why: &ParseError| UnsolicitedFrame::NotAMessage { why: why.to_string(), text: text() };
        match frame.head() {
            Ok(MessageHead::Response { id: Some(id) }) => match self.asked.get_mut(id) {
                Some(0) => Some(UnsolicitedFrame::DuplicateResponse(id.clone())),
                Some(due) => {
                    *due -= 1;
                    None
                }
                None => Some(UnsolicitedFrame::UnknownId(id.clone())),
            },
            Ok(MessageHead::Response { id: None }) => match frame.message() {
                Ok(Message::Response(response)) => response.outcome.err().map(UnsolicitedFrame::ErrorWithoutId),
                _ => None,
            },
            Ok(_) => None,
            Err(ParseError::Batch) => match frame.parts() {
                Ok(parts) => parts.iter().filter_map(|part| self.classify(part)).last(),
                Err(why) => Some(no_message(&why)),
            },
            // An invalid response is still a response.
            Err(ParseError::Invalid { id: Some(id), .. }) if self.asked.get(id).is_some_and(|due| *due > 0) => {
                self.asked.entry(id.clone()).and_modify(|due| *due -= 1);
                None
            }
            Err(why) => Some(no_message(why)),
        }
    }
}

/// The ids of the requests that a frame of the client makes, or would make if it were valid.
fn requested(frame: &Frame) -> Vec<Id> {
    match frame.head() {
        Ok(MessageHead::Request { id, .. }) => vec![id.clone()],
        Err(ParseError::Invalid { id, .. }) => id.iter().cloned().collect(),
        Err(ParseError::Batch) => frame.parts().unwrap_or_default().iter().flat_map(requested).collect(),
        _ => Vec::new(),
    }
}

/// The start of a frame.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for UnsolicitedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsolicitedFrame::NotAMessage { why, text } => write!(f, "{why}: {}", excerpt(text)),
            UnsolicitedFrame::UnknownId(id) => {
                write!(f, "a response with the id {}, which no request has", id.to_json())
            }
            UnsolicitedFrame::DuplicateResponse(id) => {
                write!(f, "a second response with the id {}", id.to_json())
            }
            UnsolicitedFrame::ErrorWithoutId(error) => write!(f, "an error without an id: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn frame_texts(frames: &[(Direction, &str)]) -> Vec<String> {
        let mut detector = UnsolicitedDetector::default();
        let frame = |(direction, text): &(Direction, &str)| {
            Frame::new(*direction, Duration::ZERO, Bytes::copy_from_slice(text.as_bytes()))
        };
        frames.iter().filter_map(|it| detector.observe(&frame(it))).map(|unsolicited| unsolicited.to_string()).collect()
    }

    const UP: Direction = Direction::ClientToServer;
    const DOWN: Direction = Direction::ServerToClient;

    #[test]
    fn frames_of_the_conversation_are_not_unsolicited() {
        let frames = [
            (UP, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#),
            (UP, r#"[{"jsonrpc":"2.0","id":2,"method":"a"},{"jsonrpc":"2.0","method":"a"}]"#),
            (UP, r#"{"id":"raw","method":5}"#),
            (DOWN, r#"{"jsonrpc":"2.0","method":"notifications/a"}"#),
            (DOWN, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            (UP, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            (DOWN, r#"{"jsonrpc":"2.0","id":"raw","error":{"code":1,"message":"m"}}"#),
            (DOWN, r#"{"jsonrpc":"1.0","id":1,"result":{}}"#),
            (DOWN, r#"[{"jsonrpc":"2.0","id":2,"result":{}}]"#),
            (UP, r#"{"jsonrpc":"2.0","id":1,"method":"again"}"#),
            (DOWN, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        ];
        assert_eq!(frame_texts(&frames), [""; 0]);
    }

    #[test]
    fn unsolicited_frames_are_named() {
        let frames = [
            (UP, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#),
            (DOWN, "Listening on stdio"),
            (DOWN, r#"{"level":"info"}"#),
            (DOWN, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#),
            (DOWN, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            (DOWN, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            (DOWN, r#"{"jsonrpc":"1.0","id":1,"result":{}}"#),
            (DOWN, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#),
            (DOWN, "[]"),
            (DOWN, r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#),
        ];
        assert_eq!(
            frame_texts(&frames),
            [
                "not JSON: expected value at line 1 column 1: Listening on stdio",
                r#"`jsonrpc` must be "2.0": {"level":"info"}"#,
                r#"a response with the id "1", which no request has"#,
                "a second response with the id 1",
                r#"`jsonrpc` must be "2.0": {"jsonrpc":"1.0","id":1,"result":{}}"#,
                "an error without an id: error -32700: what?",
                "an empty batch: []",
                "a response with the id 7, which no request has",
            ]
        );
    }
}
