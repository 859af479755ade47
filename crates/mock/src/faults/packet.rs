//! A frame to send, and how its bytes are sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{Events, stop::Stop};
use rehearse_protocol::{Message, sse::Event};

/// A frame and how it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The HTTP status, of a response.
    pub status: u16,
    /// The frame.
    pub bytes: Bytes,
    /// Sends the frame in pieces of this many bytes, with this pause between them.
    pub drip: Option<(usize, Duration)>,
    /// The number of bytes after which the frame is cut off, and what happens then.
    pub cut: Option<(usize, Stop)>,
    /// How it is written as an event of a stream.
    pub events: Option<Arc<Events>>,
}

/// What a frame is for the request that is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A notification of the server.
    Notification,
    /// A request of the server.
    Request,
    /// A frame that a server should never send.
    Unsolicited,
    /// The response to the request.
    Response,
}

/// One step of sending a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendStep {
    /// Sends these bytes, and flushes them before the next step.
    Bytes(Bytes),
    /// Waits for this time.
    Wait(Duration),
    /// Ends the answer.
    Stop(Stop),
}

/// The steps of a packet.
#[derive(Clone, Debug)]
pub struct SendSteps {
    rest: Bytes,
    drip: Option<(usize, Duration)>,
    pauses: bool,
    stop: Option<Stop>,
}

impl Packet {
    /// A frame that is sent unchanged.
    pub fn new(kind: FrameKind, bytes: Bytes) -> Packet {
        Packet { kind, status: 200, bytes, drip: None, cut: None, events: None }
    }

    /// A response that is sent unchanged.
    pub fn response(status: u16, bytes: Bytes) -> Packet {
        Packet { status, ..Packet::new(FrameKind::Response, bytes) }
    }

    /// A message that comes before the response.
    pub fn on_the_way(bytes: Bytes) -> Packet {
        let is_question = matches!(Message::parse(&bytes), Ok(Message::Request(_)));
        Packet::new(if is_question { FrameKind::Request } else { FrameKind::Notification }, bytes)
    }

    /// The bytes that are sent of it.
    pub fn sent(&self) -> Bytes {
        match self.cut {
            Some((after, _)) => self.bytes.slice(..after.min(self.bytes.len())),
            None => self.bytes.clone(),
        }
    }

    /// The steps that send the packet. `framed` puts the framing of a transport around bytes, without its end if they
    /// are not the whole frame. Of a frame that is cut off before its first byte not even the framing is sent.
    pub fn steps(&self, framed: impl FnOnce(Bytes, bool) -> Bytes) -> SendSteps {
        let rest = match self.cut {
            Some((0, _)) => Bytes::new(),
            cut => framed(self.sent(), cut.is_none()),
        };
        SendSteps { rest, drip: self.drip, pauses: false, stop: self.cut.map(|(_, stop)| stop) }
    }
}

impl Packet {
    /// The steps that send the packet as an event of a stream; `is_first` if the stream may begin with it.
    pub fn event_steps(&self, event: impl Fn(Bytes) -> Event, is_first: bool) -> SendSteps {
        self.steps(|data, is_whole| {
            let encoded = match &self.events {
                Some(events) => events.encode(&event(data), is_first),
                None => event(data).encode(),
            };
            // The end of the line, and the empty line.
            if is_whole { encoded } else { encoded.slice(..encoded.len().saturating_sub(2)) }
        })
    }
}

impl SendSteps {
    /// Sends the bytes only.
    pub fn complete(bytes: Bytes) -> SendSteps {
        SendSteps { rest: bytes, drip: None, pauses: false, stop: None }
    }

    /// Sends the bytes, then ends the answer.
    pub fn new(bytes: Bytes, stop: Stop) -> SendSteps {
        SendSteps { stop: Some(stop), ..SendSteps::complete(bytes) }
    }

    /// Whether no step is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty() && self.stop.is_none()
    }

    /// The end of the answer, if it is the next step.
    pub fn stops(&self) -> Option<Stop> {
        self.stop.filter(|_| self.rest.is_empty())
    }
}

impl Iterator for SendSteps {
    type Item = SendStep;

    fn next(&mut self) -> Option<SendStep> {
        if self.rest.is_empty() {
            return self.stop.take().map(SendStep::Stop);
        }
        let Some((size, pause)) = self.drip else { return Some(SendStep::Bytes(std::mem::take(&mut self.rest))) };
        if std::mem::take(&mut self.pauses) {
            return Some(SendStep::Wait(pause));
        }
        self.pauses = true;
        Some(SendStep::Bytes(self.rest.split_to(size.clamp(1, self.rest.len()))))
    }
}
