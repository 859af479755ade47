//! Answers over HTTP to the requests of a session.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future, stream};
use http::StatusCode;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    batch::Batch,
    connection_closer::{ConnectionCloser, pause},
    drive::{ID_IN_USE, OutgoingEvent, Pending, ResponseStream, Started, drive, without_notifications},
    http::{empty, event_stream, json},
    http_faults::{FaultyAnswer, StreamStart, set_content_type, shape_response, start_faulty},
    server_state::ServerState,
    session::Session,
    stateless::{is_streamed, json_response, simple_response},
    stream_log::{StreamKind, StreamLog},
};
use crate::{
    engine::{Decision, FaultedDecision},
    faults::{FrameKind, ResponsePart, Stop},
    journal::{Handling, Refusal},
    script::{HttpForm, HttpResponseOptions},
};
use rehearse_net::{Body, ConnectionHandle, Response};
use rehearse_protocol::{Id, RpcError, Transport, message};

/// One JSON object if the answer is there at once, or if it is to be one; else a resumable stream, which must be open
/// before anything can be resumed. A lost connection cancels nothing (2025-11-25, Transports: Sending Messages to the
/// Server).
pub(super) async fn session_response(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    decision: Decision,
    connection: Option<&ConnectionHandle>,
) -> Response {
    match decision {
        Decision::Cancel(id) => {
            session.in_flight.cancel(&id);
            empty(StatusCode::ACCEPTED)
        }
        Decision::Exchange(exchange) => {
            let (id, http, cancel_mark) = (exchange.id().clone(), exchange.http(), exchange.cancel_mark());
            let events = match drive(exchange, state.lifetime.started) {
                Started::Done(answer) if http.form() != HttpForm::Sse || answer.status != 200 => {
                    return json_response(answer);
                }
                Started::Done(answer) => return complete_stream(state, session, http, answer.frame),
                // Tasks are of the modern era, which has no sessions.
                Started::Detached(answer, _) => return json_response(answer),
                Started::Streaming(stream) => stream,
            };
            let pending = Pending { id, events, cancel_mark, ignores_cancellation: false };
            match http.form() {
                HttpForm::Json => json_answer(state, session, pending).await,
                HttpForm::Auto | HttpForm::Sse => {
                    stream_answers(state, session, http, Vec::new(), vec![pending], connection)
                }
            }
        }
        Decision::Faulted(faulty) => Box::pin(faulty_session_response(state, session, *faulty, connection)).await,
        Decision::Batch(parts) => batch_response(state, session, parts, connection),
        Decision::Respond(answer) if is_streamed(state, &answer) => {
            stream_answers(state, session, state.engine.http().answer, vec![answer.frame], Vec::new(), connection)
        }
        decision => simple_response(decision),
    }
}

/// A stream whose only message is there at once. A client can resume it as any other.
fn complete_stream(state: &ServerState, session: &Session, http: HttpResponseOptions, frame: Bytes) -> Response {
    let log = session.open_stream(StreamKind::Request, http);
    log.push(frame);
    log.complete();
    state.reorder_gate.notify_sent();
    event_stream(Body::whole(log.whole()))
}

/// One JSON object, which comes about whether or not the client stays to read it.
async fn json_answer(state: &Arc<ServerState>, session: &Arc<Session>, pending: Pending) -> Response {
    let Pending { id, events, cancel_mark, .. } = pending;
    let Some(cancelled) = session.in_flight.enter(&id, cancel_mark) else {
        return json(StatusCode::OK, refuse_id(state, &id));
    };
    let (sender, answer) = oneshot::channel();
    let (server, session) = (state.clone(), session.clone());
    state.lifetime.shutdown.tasks.spawn(async move {
        let mut events = without_notifications(events);
        let answering = async {
            match events.next().await {
                Some(OutgoingEvent::Response(answer)) => Some(answer),
                Some(OutgoingEvent::Exit(code)) => {
                    server.lifetime.exit(code);
                    None
                }
                _ => None,
            }
        };
        let answer = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            () = session.ended.cancelled() => None,
            () = server.lifetime.shutdown.kill.cancelled() => None,
            answer = answering => answer,
        };
        session.in_flight.leave(&id);
        // The client may have closed the connection.
        let _ = answer.map(|answer| sender.send(answer));
    });
    // What was cancelled is not answered (2025-11-25, Cancellation: Behavior Requirements).
    answer.await.map_or_else(|_| event_stream(Body::stream(stream::empty())), json_response)
}

async fn faulty_session_response(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    faulty: FaultedDecision,
    connection: Option<&ConnectionHandle>,
) -> Response {
    if let Decision::Cancel(id) = &faulty.decision {
        session.in_flight.cancel(id);
    }
    let (faulty_response, closer) = (start_faulty(state, faulty), state.closer(connection));
    let (http, ignores_cancellation) = (faulty_response.http, faulty_response.ignores_cancellation);
    let Some(id) = faulty_response.id.clone() else {
        return match shape_response(&closer, faulty_response, StreamStart::AtOnce).await {
            FaultyAnswer::Response(response) => response,
            FaultyAnswer::Events(..) => empty(StatusCode::ACCEPTED),
        };
    };
    let cancel_mark = faulty_response.cancel_mark.clone();
    let Some(cancelled) = session.in_flight.enter(&id, cancel_mark.clone()) else {
        return json(StatusCode::OK, refuse_id(state, &id));
    };
    // The client may close the connection at any time.
    let in_flight = session.in_flight.guard(&id);
    let shaped = tokio::select! {
        biased;
        () = cancelled.cancelled(), if !ignores_cancellation => None,
        () = session.ended.cancelled() => None,
        shaped = shape_response(&closer, faulty_response, StreamStart::AtOnce) => Some(shaped),
    };
    drop(in_flight);
    match shaped {
        None => event_stream(Body::stream(stream::empty())),
        Some(FaultyAnswer::Response(response)) => response,
        Some(FaultyAnswer::Events(parts, content_type)) => {
            let events = parts.map(OutgoingEvent::Part).boxed();
            let pending = Pending { id, events, cancel_mark, ignores_cancellation };
            let mut response = stream_answers(state, session, http, Vec::new(), vec![pending], connection);
            set_content_type(&mut response, content_type.as_deref());
            response
        }
    }
}

/// The error for a request whose id belongs to another one.
fn refuse_id(state: &ServerState, id: &Id) -> Bytes {
    let handling = Handling::refused(Refusal::Malformed, ID_IN_USE);
    state.engine.journal().record(state.lifetime.started.elapsed(), Transport::Http, &[], handling);
    message::error(Some(id), &RpcError::new(message::INVALID_REQUEST, ID_IN_USE))
}

fn batch_response(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    parts: Vec<Decision>,
    connection: Option<&ConnectionHandle>,
) -> Response {
    let Batch { ready, pending, cancelled } = Batch::begin(state, parts);
    let response = match ready.is_empty() && pending.is_empty() {
        true => empty(StatusCode::ACCEPTED),
        false => stream_answers(state, session, state.engine.http().answer, ready, pending, connection),
    };
    cancelled.iter().for_each(|id| session.in_flight.cancel(id));
    response
}

fn stream_answers(
    state: &Arc<ServerState>,
    session: &Arc<Session>,
    http: HttpResponseOptions,
    ready: Vec<Bytes>,
    pending: Vec<Pending>,
    connection: Option<&ConnectionHandle>,
) -> Response {
    let closer = state.closer(connection);
    let log = session.open_stream(StreamKind::Request, http);
    ready.into_iter().for_each(|frame| log.push(frame));
    let answers = pending.into_iter().map(|Pending { id, events, cancel_mark, ignores_cancellation }| {
        let (state, session, log, closer) = (state.clone(), session.clone(), log.clone(), closer.clone());
        // Entered before anyone can know of the request, so that no cancellation misses it.
        let entered = session.in_flight.enter(&id, cancel_mark);
        async move {
            let Some(cancelled) = entered else {
                return log.push(refuse_id(&state, &id));
            };
            tokio::select! {
                biased;
                () = cancelled.cancelled(), if !ignores_cancellation => {}
                () = session.ended.cancelled() => {}
                () = state.lifetime.shutdown.kill.cancelled() => {}
                () = deliver(&state, events, &log, &closer) => {}
            }
            session.in_flight.leave(&id);
        }
    });
    let all = future::join_all(answers.collect::<Vec<_>>());
    let completed = log.clone();
    state.lifetime.shutdown.tasks.spawn(all.map(move |_| completed.complete()));
    stream_response(state, session, log, 0, closer)
}

async fn deliver(state: &ServerState, mut events: ResponseStream, log: &StreamLog, closer: &ConnectionCloser) {
    while let Some(event) = events.next().await {
        match event {
            OutgoingEvent::Frame(frame) => log.push(frame),
            OutgoingEvent::Response(answer) | OutgoingEvent::Detached(answer, _) => {
                log.push(answer.frame);
                state.reorder_gate.notify_sent();
            }
            OutgoingEvent::Disconnect(retry) => log.end_connection(retry),
            OutgoingEvent::Exit(code) => state.lifetime.exit(code),
            OutgoingEvent::Part(part) => deliver_part(state, part, log, closer).await,
        }
    }
}

async fn deliver_part(state: &ServerState, part: ResponsePart, log: &StreamLog, closer: &ConnectionCloser) {
    let stop = match &part {
        ResponsePart::Packet(packet) => {
            log.push_packet(packet);
            if packet.kind == FrameKind::Response {
                state.reorder_gate.notify_sent();
            }
            packet.cut.map(|(_, stop)| stop)
        }
        ResponsePart::Disconnect(retry) => {
            log.end_connection(*retry);
            None
        }
        ResponsePart::Stop(Stop::Finish) => None,
        ResponsePart::Stop(stop) => {
            log.stop(*stop);
            Some(*stop)
        }
        part => {
            pause(closer, part).await;
            None
        }
    };
    if stop == Some(Stop::Hang) {
        state.lifetime.shutdown.stop.cancelled().await;
    }
}

/// What is to come on a stream. A standalone one has no end of its own: it ends with the session or the server.
pub(super) fn stream_response(
    state: &ServerState,
    session: &Session,
    log: Arc<StreamLog>,
    from: usize,
    closer: ConnectionCloser,
) -> Response {
    let stop = match log.kind {
        StreamKind::Request => CancellationToken::new(),
        StreamKind::Standalone => state.lifetime.shutdown.stop.clone(),
    };
    event_stream(Body::stream(log.read(from, [session.ended.clone(), stop], closer)))
}
