//! Answers over HTTP with faults: the head, the body, and how the connection ends.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, StatusCode, header};
use tokio_util::sync::CancellationToken;

use super::{
    connection_closer::{ConnectionCloser, pause},
    faulty_response::{FaultyResponse, PartStream},
    http::{empty, event_stream, json},
    server_state::ServerState,
};
use crate::{
    engine::FaultedDecision,
    faults::{FrameKind, Packet, ResponsePart, SendStep, SendSteps, StatusResponse, Stop},
    script::HttpForm,
};
use rehearse_net::{Body, Response};
use rehearse_protocol::sse::Event;

/// What an answer becomes.
pub(super) enum FaultyAnswer {
    Response(Response),
    /// A stream of events, and the media type to give it.
    Events(PartStream, Option<Arc<str>>),
}

/// When the stream of an answer opens that is to be a stream only if it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamStart {
    /// As soon as the answer is not there at once: a client that loses the stream can resume it.
    AtOnce,
    /// With the first message that comes before the response, if one does: until then it can have a status.
    AtFirstMessage,
}

/// The answer with its faults. What goes on in the background goes on until the server ends.
pub(super) fn start_faulty(state: &Arc<ServerState>, faulty: FaultedDecision) -> FaultyResponse {
    let background = state.clone();
    let detach = move |exchange| background.lifetime.spawn_background(exchange);
    let http = state.engine.http().answer;
    FaultyResponse::new(faulty, http, state.lifetime.started, state.lifetime.shutdown.stop.clone(), detach)
}

/// Gives the answer its shape. It is a JSON object if it would be without faults, and is one frame.
pub(super) async fn shape_response(
    closer: &ConnectionCloser,
    mut faulty_response: FaultyResponse,
    opening: StreamStart,
) -> FaultyAnswer {
    let mut content_type = None;
    loop {
        match faulty_response.parts.next().await {
            Some(ResponsePart::Begin) => break,
            Some(ResponsePart::Wait(time)) => tokio::time::sleep(time).await,
            Some(ResponsePart::ContentType(text)) => content_type = Some(text),
            Some(ResponsePart::Replace(refused)) => return FaultyAnswer::Response(refusal(refused)),
            Some(ResponsePart::Stop(stop)) => {
                closer.end(stop).await;
                return FaultyAnswer::Response(empty(StatusCode::INTERNAL_SERVER_ERROR));
            }
            // No fault puts anything else before the beginning.
            Some(_) => {}
            None => return FaultyAnswer::Response(empty(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }
    let form = faulty_response.http.form();
    let never = CancellationToken::new();
    let begun = match form {
        HttpForm::Json => &never,
        _ if faulty_response.at_once => &never,
        HttpForm::Auto if opening == StreamStart::AtFirstMessage => &faulty_response.begun,
        HttpForm::Auto | HttpForm::Sse => return FaultyAnswer::Events(faulty_response.parts, content_type),
    };
    let may_stream = form == HttpForm::Auto;
    let (mut packets, stop) = match collect_body(closer, &mut faulty_response.parts, begun, may_stream).await {
        CollectedBody::Complete(packets, stop) => (packets, stop),
        CollectedBody::Streaming(parts) => {
            return FaultyAnswer::Events(stream::iter(parts).chain(faulty_response.parts).boxed(), content_type);
        }
    };
    if form == HttpForm::Json {
        packets.retain(|packet| matches!(packet.kind, FrameKind::Response | FrameKind::Unsolicited));
    }
    let is_json = match &packets[..] {
        [] => form == HttpForm::Json,
        [packet] => form != HttpForm::Sse || packet.status != 200,
        _ => form == HttpForm::Json,
    };
    let mut response = match (is_json, &faulty_response.id) {
        (true, _) => json_lines(closer, packets, stop),
        // A notification is not answered.
        (false, None) if packets.is_empty() => {
            closer.end(stop).await;
            empty(StatusCode::ACCEPTED)
        }
        (false, _) => {
            let parts = packets.into_iter().map(ResponsePart::Packet).chain([ResponsePart::Stop(stop)]);
            return FaultyAnswer::Events(stream::iter(parts).boxed(), content_type);
        }
    };
    if let Some(challenge) = faulty_response.challenge {
        response.extensions_mut().insert(challenge);
    }
    set_content_type(&mut response, content_type.as_deref());
    FaultyAnswer::Response(response)
}

/// What was gathered of an answer.
enum CollectedBody {
    /// Its frames, and how it ends.
    Complete(Vec<Packet>, Stop),
    /// The beginning of a stream.
    Streaming(Vec<ResponsePart>),
}

/// Collects an answer, unless it turns out to have `begun` with a message before its response. One that `may_stream` is
/// a stream also if time passes between something and the response.
async fn collect_body(
    closer: &ConnectionCloser,
    parts: &mut PartStream,
    begun: &CancellationToken,
    may_stream: bool,
) -> CollectedBody {
    let mut packets: Vec<Packet> = Vec::new();
    let streaming = |packets: Vec<Packet>, next| {
        CollectedBody::Streaming(packets.into_iter().map(ResponsePart::Packet).chain(next).collect())
    };
    loop {
        let part = tokio::select! {
            biased;
            part = parts.next() => part,
            // What began it may have been dropped.
            () = begun.cancelled() => return streaming(packets, None),
        };
        let is_unanswered = |packets: &[Packet]| !packets.iter().any(|packet| packet.kind == FrameKind::Response);
        match part {
            Some(part) if begun.is_cancelled() => return streaming(packets, Some(part)),
            Some(part @ ResponsePart::Wait(_)) if may_stream && !packets.is_empty() && is_unanswered(&packets) => {
                return streaming(packets, Some(part));
            }
            Some(ResponsePart::Packet(packet)) => packets.push(packet),
            Some(ResponsePart::Stop(stop)) => return CollectedBody::Complete(packets, stop),
            Some(part) => pause(closer, &part).await,
            None => return CollectedBody::Complete(packets, Stop::Finish),
        }
    }
}

/// A JSON body of these frames, one a line.
fn json_lines(closer: &ConnectionCloser, packets: Vec<Packet>, stop: Stop) -> Response {
    let status = packets.last().map_or(200, |packet| packet.status);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let ([packet @ Packet { drip: None, cut: None, .. }], Stop::Finish) = (&packets[..], stop) {
        return json(status, packet.bytes.clone());
    }
    let length = packets.iter().map(|packet| packet.bytes.len() + 1).sum::<usize>().saturating_sub(1);
    let mut steps: VecDeque<SendSteps> = VecDeque::new();
    for packet in packets {
        if !steps.is_empty() {
            steps.push_back(SendSteps::complete(Bytes::from_static(b"\n")));
        }
        steps.push_back(packet.steps(|bytes, _| bytes));
    }
    if stop != Stop::Finish {
        steps.push_back(SendSteps::new(Bytes::new(), stop));
    }
    let body = stream::unfold((steps, closer.clone()), |(mut steps, closer)| async move {
        loop {
            match steps.front_mut()?.next() {
                Some(SendStep::Bytes(bytes)) => {
                    // The client does not read on once all announced bytes are there.
                    if let Some(stop) = next_stop(&steps) {
                        closer.disconnect(stop);
                    }
                    return Some((bytes, (steps, closer)));
                }
                Some(SendStep::Wait(time)) => tokio::time::sleep(time).await,
                Some(SendStep::Stop(stop)) => {
                    closer.end(stop).await;
                    return None;
                }
                None => drop(steps.pop_front()),
            }
        }
    });
    let mut response = json(status, Bytes::new());
    *response.body_mut() = Body::stream_with_length(length, body);
    response
}

/// How it ends, if that is next.
fn next_stop(steps: &VecDeque<SendSteps>) -> Option<Stop> {
    steps.iter().find(|steps| !steps.is_over())?.stops()
}

/// A stream of events that cannot be resumed.
pub(super) fn respond_with_events(closer: ConnectionCloser, parts: PartStream, content_type: Option<&str>) -> Response {
    let state = (parts, SendSteps::complete(Bytes::new()), closer);
    let body = stream::unfold(state, |(mut parts, mut steps, closer)| async move {
        loop {
            for step in steps.by_ref() {
                match step {
                    SendStep::Bytes(bytes) => return Some((bytes, (parts, steps, closer))),
                    SendStep::Wait(time) => tokio::time::sleep(time).await,
                    SendStep::Stop(stop) => {
                        closer.end_stream(stop).await;
                        return None;
                    }
                }
            }
            match parts.next().await? {
                ResponsePart::Packet(packet) => {
                    if packet.kind == FrameKind::Response {
                        closer.reorder_gate().notify_sent();
                    }
                    steps = packet.event_steps(Event::message, true);
                }
                ResponsePart::Stop(stop) => steps = SendSteps::new(Bytes::new(), stop),
                part => pause(&closer, &part).await,
            }
        }
    });
    let mut response = event_stream(Body::stream(body));
    set_content_type(&mut response, content_type);
    response
}

pub(super) fn set_content_type(response: &mut Response, content_type: Option<&str>) {
    match content_type {
        None => {}
        Some("") => drop(response.headers_mut().remove(header::CONTENT_TYPE)),
        Some(text) => {
            if let Ok(value) = HeaderValue::from_str(text) {
                response.headers_mut().insert(header::CONTENT_TYPE, value);
            }
        }
    }
}

/// The response that comes instead of an answer.
pub(super) fn refusal(refusal: StatusResponse) -> Response {
    let mut response = Response::new(Body::whole(refusal.body));
    *response.status_mut() = refusal.code;
    set_content_type(&mut response, refusal.content_type);
    for (name, value) in refusal.headers.iter() {
        response.headers_mut().insert(name, value.clone());
    }
    response
}
