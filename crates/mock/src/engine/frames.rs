//! Frames that reach the engine, and the responses that leave it.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::journal::Received;
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
    /// The id of the session, or a name for the connection.
    pub session: Option<&'a str>,
    /// The headers of the request that carried the frame or opened its connection; `None` where a transport has none.
    pub headers: Option<&'a HeaderMap>,
    /// The access token of the client, if the server requires tokens.
    pub token: Option<&'a Token>,
    /// The names of the faults that apply to its answer, for the journal.
    pub faults: &'a [&'static str],
}

impl<'a> Incoming<'a> {
    /// The message for the journal.
    pub(super) fn received(&self) -> Received<'a> {
        let Incoming { bytes, transport, at, session, faults, .. } = *self;
        Received { at, transport, session, request: bytes, http: None, faults }
    }

    /// The headers that mirror the message, as on streamable HTTP.
    pub(super) fn mirror(&self) -> Option<&'a HeaderMap> {
        self.headers.filter(|_| self.transport == Transport::Http)
    }
}

/// A response and its HTTP status, for transports that have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseFrame {
    /// The HTTP status.
    pub status: u16,
    /// The response.
    pub frame: Bytes,
    /// The challenge, if the token of the client is not sufficient.
    pub challenge: Option<Challenge>,
}

impl ResponseFrame {
    pub(super) fn new(status: u16, frame: Bytes) -> ResponseFrame {
        ResponseFrame { status, frame, challenge: None }
    }

    /// A response with status 200 and no challenge.
    pub fn ok(frame: Bytes) -> ResponseFrame {
        ResponseFrame::new(200, frame)
    }
}
