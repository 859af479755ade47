//! The parts of an answer before it is sent.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    packet::{FrameKind, Packet},
    stop::Stop,
};

/// A part of an answer before it is sent. The order is [`ResponsePart::Begin`], other messages, the response,
/// [`ResponsePart::Stop`]. Parts before `Begin` take effect before the head of an HTTP response is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponsePart {
    /// The answer begins.
    Begin,
    /// Nothing is sent for this time.
    Wait(Duration),
    /// Another answer goes first, unless none is sent within this time.
    Yield(Duration),
    /// The media type of the HTTP response; none at all if it is empty.
    ContentType(Arc<str>),
    /// This HTTP response comes instead of the answer.
    Replace(StatusResponse),
    /// A frame.
    Packet(Packet),
    /// Closes the stream if it can be resumed, after an event with the time to reconnect.
    Disconnect(Option<Duration>),
    /// Nothing follows.
    Stop(Stop),
}

/// An HTTP response that replaces the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusResponse {
    /// The HTTP status.
    pub code: StatusCode,
    /// The media type of the body, if there is one.
    pub content_type: Option<&'static str>,
    /// Headers that are added or replaced.
    pub headers: Arc<[(HeaderName, HeaderValue)]>,
    /// The body.
    pub body: Bytes,
}

/// Stops the answer: before its first byte, or after this many bytes of the response.
pub(super) fn stop_at(after: Option<usize>, stop: Stop, part: ResponsePart, out: &mut Vec<ResponsePart>) {
    match (part, after) {
        (ResponsePart::Begin, None) => out.push(ResponsePart::Stop(stop)),
        (ResponsePart::Packet(packet), Some(after)) if packet.kind == FrameKind::Response => {
            let is_whole = after >= packet.bytes.len();
            out.push(ResponsePart::Packet(if is_whole {
                packet
            } else {
                Packet { cut: Some((after, stop)), ..packet }
            }));
            out.extend(is_whole.then_some(ResponsePart::Stop(stop)));
        }
        (part, _) => out.push(part),
    }
}
