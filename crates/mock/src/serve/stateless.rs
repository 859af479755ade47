//! Answers over HTTP to requests without a session: all of the modern era, and those of legacy clients of a server
//! without sessions.

use std::sync::Arc;

use futures_util::{StreamExt, future, stream};
use http::StatusCode;

use super::{
    batch::Batch,
    drive::{OutgoingEvent, ResponseStream, Started, drive, drive_subscription, without_notifications},
    http::{empty, event_stream, json},
    http_faults::{FaultyAnswer, StreamStart, respond_with_events, shape_response, start_faulty},
    server_state::ServerState,
};
use crate::{
    engine::{Decision, Exchange, ResponseFrame},
    faults::{Packet, ResponsePart, Stop},
    script::HttpForm,
};
use rehearse_net::{Body, ConnectionHandle, Response};
use rehearse_protocol::sse;

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The response to a message that needs no stream.
pub(super) fn simple_response(decision: Decision) -> Response {
    match decision {
        Decision::Respond(answer) => json_response(answer),
        _ => empty(StatusCode::ACCEPTED),
    }
}

pub(super) fn json_response(answer: ResponseFrame) -> Response {
    let mut response = json(status(answer.status), answer.frame);
    if let Some(challenge) = answer.challenge {
        response.extensions_mut().insert(challenge);
    }
    response
}

/// The response to a request without a session. When the client disconnects, its request is cancelled
/// (2026-07-28, Cancellation: Transport-Specific Cancellation).
pub(super) async fn stateless_response(
    state: &Arc<ServerState>,
    decision: Decision,
    connection: Option<&ConnectionHandle>,
) -> Response {
    match decision {
        Decision::Exchange(exchange) => exchange_response(state, exchange).await,
        Decision::Subscribe(listen) => {
            event_response(state, drive_subscription(listen, state.lifetime.shutdown.stop.clone()))
        }
        Decision::Batch(parts) => batch_response(state, parts, connection),
        Decision::Faulted(faulty) => {
            let closer = state.closer(connection);
            match Box::pin(shape_response(&closer, start_faulty(state, *faulty), StreamStart::AtFirstMessage)).await {
                FaultyAnswer::Response(response) => response,
                FaultyAnswer::Events(parts, content_type) => {
                    respond_with_events(closer, parts, content_type.as_deref())
                }
            }
        }
        Decision::Respond(answer) if is_streamed(state, &answer) => {
            event_response(state, stream::iter([OutgoingEvent::Response(answer)]).boxed())
        }
        decision => simple_response(decision),
    }
}

/// Whether an answer that is there at once is sent as a stream nevertheless.
pub(super) fn is_streamed(state: &ServerState, answer: &ResponseFrame) -> bool {
    state.engine.http().answer.form() == HttpForm::Sse && answer.status == 200 && answer.challenge.is_none()
}

/// One JSON object if the response comes first, else a stream that begins with the first message: the status of an
/// error must match it, even after a delay (2026-07-28, Basic: Error Handling; Streamable HTTP: Sending Messages to the
/// Server).
async fn exchange_response(state: &Arc<ServerState>, exchange: Box<Exchange>) -> Response {
    let form = exchange.http().form();
    let mut stream = match drive(exchange, state.lifetime.started) {
        Started::Done(answer) if form != HttpForm::Sse || answer.status != 200 => return json_response(answer),
        Started::Done(answer) => stream::iter([OutgoingEvent::Response(answer)]).boxed(),
        Started::Detached(answer, exchange) => {
            state.lifetime.spawn_background(exchange);
            return json_response(answer);
        }
        Started::Streaming(stream) => stream,
    };
    match form {
        HttpForm::Sse => return event_response(state, stream),
        HttpForm::Json => stream = without_notifications(stream),
        HttpForm::Auto => {}
    }
    loop {
        match stream.next().await {
            Some(OutgoingEvent::Response(answer)) => return json_response(answer),
            Some(OutgoingEvent::Detached(answer, exchange)) => {
                state.lifetime.spawn_background(exchange);
                return json_response(answer);
            }
            Some(first @ OutgoingEvent::Frame(_)) => {
                return event_response(state, stream::iter([first]).chain(stream).boxed());
            }
            // A stream without a session cannot be resumed, and `respond_with_events` applies the faults.
            Some(OutgoingEvent::Disconnect(_) | OutgoingEvent::Part(_)) => {}
            Some(OutgoingEvent::Exit(code)) => {
                state.lifetime.exit(code);
                // The connection takes this along.
                return future::pending().await;
            }
            None => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// A batch without a session (2025-03-26, Basic: Batching). Requests that the batch itself cancels are not answered.
fn batch_response(state: &Arc<ServerState>, parts: Vec<Decision>, connection: Option<&ConnectionHandle>) -> Response {
    let Batch { ready, mut pending, cancelled } = Batch::begin(state, parts);
    pending.retain(|it| {
        let is_cancelled = !it.ignores_cancellation && cancelled.contains(&it.id);
        if is_cancelled {
            it.cancel_mark.set();
        }
        !is_cancelled
    });
    if ready.is_empty() && pending.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    let ready = ready.into_iter().map(|frame| ResponsePart::Packet(Packet::response(200, frame)));
    let pending = stream::select_all(pending.into_iter().map(|it| it.events)).filter_map(|event| {
        future::ready(match event {
            OutgoingEvent::Frame(frame) => Some(ResponsePart::Packet(Packet::on_the_way(frame))),
            OutgoingEvent::Response(answer) | OutgoingEvent::Detached(answer, _) => {
                Some(ResponsePart::Packet(Packet::response(answer.status, answer.frame)))
            }
            OutgoingEvent::Exit(code) => Some(ResponsePart::Stop(Stop::Exit(code))),
            // Others may still be in progress.
            OutgoingEvent::Disconnect(_) | OutgoingEvent::Part(ResponsePart::Stop(Stop::Finish)) => None,
            OutgoingEvent::Part(part) => Some(part),
        })
    });
    respond_with_events(state.closer(connection), stream::iter(ready).chain(pending).boxed(), None)
}

/// The stream of one request.
fn event_response(state: &Arc<ServerState>, events: ResponseStream) -> Response {
    let state = state.clone();
    let frames = events.filter_map(move |event| {
        future::ready(match event {
            OutgoingEvent::Frame(frame) => Some(sse::Event::message(frame).encode()),
            OutgoingEvent::Response(answer) => {
                state.reorder_gate.notify_sent();
                Some(sse::Event::message(answer.frame).encode())
            }
            OutgoingEvent::Detached(answer, exchange) => {
                state.lifetime.spawn_background(exchange);
                state.reorder_gate.notify_sent();
                Some(sse::Event::message(answer.frame).encode())
            }
            // `respond_with_events` applies the faults.
            OutgoingEvent::Disconnect(_) | OutgoingEvent::Part(_) => None,
            OutgoingEvent::Exit(code) => {
                state.lifetime.exit(code);
                None
            }
        })
    });
    event_stream(Body::stream(frames))
}
