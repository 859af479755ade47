//! Frames that reach the engine, and the responses that leave it.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::script::{Challenge, Token};
use rehearse_protocol::Transport;

/// A frame as it reached the mock.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The frame.
    pub bytes: &'a Bytes,
    /// The transport that carried it.
    pub transport: Transport,
    /// Time since the mock was started.
    pub at: Duration,
    /// The headers of the request that carried the frame or opened its connection; `None` where a transport has none.
    pub headers: Option<&'a HeaderMap>,
    /// What the client has shown that it may do, if the server wants to know.
    pub token: Option<&'a Token>,
    /// The names of the faults that apply to its answer, for the journal.
    pub faults: &'a [&'static str],
}

impl<'a> Incoming<'a> {
    /// The headers that repeat what the message says, as those of streamable HTTP do.
    pub(super) fn mirror(&self) -> Option<&'a HeaderMap> {
        self.headers.filter(|_| self.transport == Transport::Http)
    }
}

/// A response and the HTTP status that it has where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseFrame {
    /// The HTTP status.
    pub status: u16,
    /// The response.
    pub frame: Bytes,
    /// The client must show that it may do more.
    pub challenge: Option<Challenge>,
}

impl ResponseFrame {
    pub(super) fn new(status: u16, frame: Bytes) -> ResponseFrame {
        ResponseFrame { status, frame, challenge: None }
    }

    /// An answer without anything special about it.
    pub fn ok(frame: Bytes) -> ResponseFrame {
        ResponseFrame::new(200, frame)
    }
}
