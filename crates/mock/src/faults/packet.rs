//! A frame on its way out, and how its bytes are sent.

use std::time::Duration;

use bytes::Bytes;

use super::stop::Stop;
use rehearse_protocol::Message;

/// A frame and how it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What the frame is.
    pub kind: FrameKind,
    /// The HTTP status, of a response.
    pub status: u16,
    /// The frame.
    pub bytes: Bytes,
    /// It is sent in pieces of so many bytes, with this pause between them.
    pub drip: Option<(usize, Duration)>,
    /// How many bytes of it are sent, fewer than it has, and what happens then.
    pub cut: Option<(usize, Stop)>,
}

/// What a frame is for the request that is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A notification of the server.
    Notification,
    /// A request of the server.
    Request,
    /// What no server should send.
    Unsolicited,
    /// The response to the request.
    Response,
}

/// What is to be done for a packet, one step after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendStep {
    /// These bytes are sent, and have left before the next step.
    Bytes(Bytes),
    /// Nothing is sent for this time.
    Wait(Duration),
    /// The answer ends.
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
    /// A frame that is sent as it is.
    pub fn new(kind: FrameKind, bytes: Bytes) -> Packet {
        Packet { kind, status: 200, bytes, drip: None, cut: None }
    }

    /// A response that is sent as it is.
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

    /// The steps of sending it. `framed` puts the framing of a transport around bytes, without its end if they are not
    /// the whole frame. Of a frame that is cut off before its first byte not even the framing is sent.
    pub fn steps(&self, framed: impl FnOnce(Bytes, bool) -> Bytes) -> SendSteps {
        let rest = match self.cut {
            Some((0, _)) => Bytes::new(),
            cut => framed(self.sent(), cut.is_none()),
        };
        SendSteps { rest, drip: self.drip, pauses: false, stop: self.cut.map(|(_, stop)| stop) }
    }
}

impl SendSteps {
    /// Bytes, and nothing else.
    pub fn whole(bytes: Bytes) -> SendSteps {
        SendSteps { rest: bytes, drip: None, pauses: false, stop: None }
    }

    /// Bytes, and what comes after them.
    pub fn new(bytes: Bytes, stop: Stop) -> SendSteps {
        SendSteps { stop: Some(stop), ..SendSteps::whole(bytes) }
    }

    /// Whether nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty() && self.stop.is_none()
    }

    /// What comes next, if that is the end.
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
