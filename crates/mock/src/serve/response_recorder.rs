//! Records the body of a response while it is sent.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};

use super::connection_trace::ConnectionTrace;
use rehearse_protocol::{
    Direction, EventKind,
    http::{Asked, is_message},
    sse::{self, Decoder},
};

/// The content of a response body.
#[derive(Debug)]
pub(super) enum Content {
    /// Server-sent events, each a frame.
    Events,
    /// A frame, if the whole is a message.
    Whole { asked: Asked, status: StatusCode, headers: HeaderMap },
}

/// Records a response body while it is sent. A body that is dropped is recorded as far as it was sent.
pub(super) struct ResponseRecorder {
    trace: Arc<ConnectionTrace>,
    exchange: Option<u32>,
    content: Content,
    /// How many bytes the head announces.
    length: Option<u64>,
    events: Decoder,
    /// The bytes of the whole that were sent.
    sent: BytesMut,
    /// Whether it is a stream that goes on.
    pub(super) is_open: bool,
}

impl ResponseRecorder {
    pub(super) fn new(
        trace: Arc<ConnectionTrace>,
        exchange: Option<u32>,
        content: Content,
        length: Option<u64>,
    ) -> ResponseRecorder {
        ResponseRecorder {
            trace,
            exchange,
            content,
            length,
            events: Decoder::new(usize::MAX),
            sent: BytesMut::new(),
            is_open: false,
        }
    }

    pub(super) fn record(&mut self, bytes: &Bytes) {
        match self.content {
            Content::Events => self.record_events(bytes),
            Content::Whole { .. } => {
                self.sent.extend_from_slice(bytes);
                // Before the client has it all: it may look at the trace at once.
                if self.length.is_some_and(|length| self.sent.len() as u64 >= length) {
                    self.record_whole();
                }
            }
        }
    }

    fn record_events(&mut self, bytes: &[u8]) {
        let mut events = Vec::new();
        // Nothing is too large for the decoder.
        let _ = self.events.push(bytes, &mut events);
        for event in events {
            match event {
                sse::Event { event: Some(ref kind), .. } if !matches!(&**kind, "" | "message") => {
                    self.record_other(event.encode());
                }
                sse::Event { id, retry, data, .. } => {
                    if id.is_some() || retry.is_some() {
                        self.record_other(sse::Event { id, retry, ..sse::Event::default() }.encode());
                    }
                    if let Some(data) = data.filter(|data| !data.is_empty()) {
                        self.trace.record_frame_in(self.exchange, Direction::ServerToClient, data);
                    }
                }
            }
        }
    }

    fn record_whole(&mut self) {
        let bytes = self.sent.split().freeze();
        match &self.content {
            Content::Whole { asked, status, headers } if is_message(*asked, *status, headers, &bytes) => {
                self.trace.record_frame_in(self.exchange, Direction::ServerToClient, bytes);
            }
            _ if bytes.is_empty() => {}
            _ => self.record_other(bytes),
        }
    }

    fn record_other(&self, bytes: Bytes) {
        let kind = EventKind::HttpBody { direction: Direction::ServerToClient, bytes };
        self.trace.record_in(self.exchange, kind);
    }
}

impl Drop for ResponseRecorder {
    fn drop(&mut self) {
        match self.content {
            // The missing end of an event that was cut off.
            Content::Events => self.record_events(b"\n\n"),
            Content::Whole { .. } => self.record_whole(),
        }
        if self.is_open {
            self.trace.record_in(self.exchange, EventKind::HttpEnd { is_whole: false });
        }
    }
}
