//! The pieces of an answer on its way out.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    packet::{FrameKind, Packet},
    stop::Stop,
};

/// A piece of an answer on its way out. The order is [`ResponsePart::Begin`], what comes on the way, the response,
/// [`ResponsePart::Stop`]; what a fault puts before `Begin` happens before even the head of an HTTP response is sent.
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
    /// The stream is to be closed where it can be resumed, after telling the client when to come back.
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
    /// These are given besides, or instead.
    pub headers: Arc<[(HeaderName, HeaderValue)]>,
    /// The body.
    pub body: Bytes,
}

/// Stops the answer: before anything of it, or after so many bytes of the response.
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
