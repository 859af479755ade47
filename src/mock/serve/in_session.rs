//! Answers over HTTP to the requests of a session.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future, stream};
use http::StatusCode;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    batch::Batch,
    faulty::{Ender, Opening, Shape, afflicted, pause, set_content_type, shape},
    http::{empty, events, json},
    lone::{simple_response, whole},
    play::{Beginning, ID_IN_USE, Pending, Played, Way, only_response, play},
    session::Session,
    stream_log::{StreamKind, StreamLog},
};
use crate::{
    mock::{
        engine::{Faulty, Intake},
        faults::{Item, Kind, Stop},
        journal::Handling,
        script::{Form, HttpAnswer},
    },
    transport::{
        Transport,
        server::{Body, Line, Response},
    },
    wire::{Id, RpcError, message},
};

/// One JSON object if the answer is there at once, or if it is to be one; else a resumable stream, which must be open
/// before anything can be resumed. A lost connection cancels nothing (2025-11-25, Transports: Sending Messages to the
/// Server).
pub(super) async fn session_response(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    intake: Intake,
    line: Option<&Line>,
) -> Response {
    match intake {
        Intake::Cancel(id) => {
            session.in_flight.cancel(&id);
            empty(StatusCode::ACCEPTED)
        }
        Intake::Exchange(exchange) => {
            let (id, http) = (exchange.id().clone(), exchange.http());
            let played = match play(exchange, shared.life.started) {
                Beginning::Response(answer) if http.form() != Form::Sse || answer.status != 200 => {
                    return whole(answer);
                }
                Beginning::Response(answer) => stream::iter([Played::Response(answer)]).boxed(),
                // Tasks are of the modern era, which has no sessions.
                Beginning::Detached(answer, _) => return whole(answer),
                Beginning::Under(way) => way,
            };
            let pending = Pending { id, played, ignores_cancellation: false };
            match http.form() {
                Form::Json => json_answer(shared, session, pending).await,
                Form::Auto | Form::Sse => stream_answers(shared, session, http, Vec::new(), vec![pending], line),
            }
        }
        Intake::Faulty(faulty) => Box::pin(faulty_session_response(shared, session, *faulty, line)).await,
        Intake::Batch(parts) => batch_response(shared, session, parts, line),
        intake => simple_response(intake),
    }
}

/// One JSON object, which comes about whether or not the client stays to read it.
async fn json_answer(shared: &Arc<Shared>, session: &Arc<Session>, pending: Pending) -> Response {
    let Pending { id, played, .. } = pending;
    let Some(cancelled) = session.in_flight.enter(&id) else {
        return json(StatusCode::OK, refuse_id(shared, &id));
    };
    let (sender, answer) = oneshot::channel();
    let (server, session) = (shared.clone(), session.clone());
    shared.life.shutdown.tasks.spawn(async move {
        let mut played = only_response(played);
        let answering = async {
            match played.next().await {
                Some(Played::Response(answer)) => Some(answer),
                Some(Played::Died(code)) => {
                    server.life.die(code);
                    None
                }
                _ => None,
            }
        };
        let answer = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            () = session.ended.cancelled() => None,
            () = server.life.shutdown.kill.cancelled() => None,
            answer = answering => answer,
        };
        session.in_flight.leave(&id);
        // The client may have closed the connection.
        let _ = answer.map(|answer| sender.send(answer));
    });
    // What was cancelled is not answered (2025-11-25, Cancellation: Behavior Requirements).
    answer.await.map_or_else(|_| events(Body::stream(stream::empty())), whole)
}

async fn faulty_session_response(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    faulty: Faulty,
    line: Option<&Line>,
) -> Response {
    if let Intake::Cancel(id) = &faulty.intake {
        session.in_flight.cancel(id);
    }
    let (afflicted, ender) = (afflicted(shared, faulty), Ender::new(shared, line));
    let (http, ignores_cancellation) = (afflicted.http, afflicted.ignores_cancellation);
    let Some(id) = afflicted.id.clone() else {
        return match shape(&ender, afflicted, Opening::AtOnce).await {
            Shape::Response(response) => response,
            Shape::Events(..) => empty(StatusCode::ACCEPTED),
        };
    };
    let Some(cancelled) = session.in_flight.enter(&id) else {
        return json(StatusCode::OK, refuse_id(shared, &id));
    };
    // The client may close the connection at any time.
    let in_flight = session.in_flight.leaving(&id);
    let shaped = tokio::select! {
        biased;
        () = cancelled.cancelled(), if !ignores_cancellation => None,
        () = session.ended.cancelled() => None,
        shaped = shape(&ender, afflicted, Opening::AtOnce) => Some(shaped),
    };
    drop(in_flight);
    match shaped {
        None => events(Body::stream(stream::empty())),
        Some(Shape::Response(response)) => response,
        Some(Shape::Events(items, content_type)) => {
            let played = items.map(Played::Faulty).boxed();
            let pending = Pending { id, played, ignores_cancellation };
            let mut response = stream_answers(shared, session, http, Vec::new(), vec![pending], line);
            set_content_type(&mut response, content_type.as_deref());
            response
        }
    }
}

/// The error for a request whose id belongs to another one.
fn refuse_id(shared: &Shared, id: &Id) -> Bytes {
    let handling = Handling::Refused(ID_IN_USE.to_owned());
    shared.engine.journal().record(shared.life.started.elapsed(), Transport::Http, &[], handling);
    message::error(Some(id), &RpcError::new(message::INVALID_REQUEST, ID_IN_USE))
}

fn batch_response(shared: &Arc<Shared>, session: &Arc<Session>, parts: Vec<Intake>, line: Option<&Line>) -> Response {
    let Batch { ready, pending, cancelled } = Batch::begin(shared, parts);
    let response = match ready.is_empty() && pending.is_empty() {
        true => empty(StatusCode::ACCEPTED),
        false => stream_answers(shared, session, shared.engine.http().answer, ready, pending, line),
    };
    cancelled.iter().for_each(|id| session.in_flight.cancel(id));
    response
}

fn stream_answers(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    http: HttpAnswer,
    ready: Vec<Bytes>,
    pending: Vec<Pending>,
    line: Option<&Line>,
) -> Response {
    let ender = Ender::new(shared, line);
    let log = session.open_stream(StreamKind::Request, http);
    ready.into_iter().for_each(|frame| log.push(frame));
    let answers = pending.into_iter().map(|Pending { id, played, ignores_cancellation }| {
        let (shared, session, log, ender) = (shared.clone(), session.clone(), log.clone(), ender.clone());
        // Entered before anyone can know of the request, so that no cancellation misses it.
        let entered = session.in_flight.enter(&id);
        async move {
            let Some(cancelled) = entered else {
                return log.push(refuse_id(&shared, &id));
            };
            tokio::select! {
                biased;
                () = cancelled.cancelled(), if !ignores_cancellation => {}
                () = session.ended.cancelled() => {}
                () = shared.life.shutdown.kill.cancelled() => {}
                () = deliver(&shared, played, &log, &ender) => {}
            }
            session.in_flight.leave(&id);
        }
    });
    let all = future::join_all(answers.collect::<Vec<_>>());
    let completed = log.clone();
    shared.life.shutdown.tasks.spawn(all.map(move |_| completed.complete()));
    stream_response(shared, session, log, 0, ender)
}

async fn deliver(shared: &Shared, mut played: Way, log: &StreamLog, ender: &Ender) {
    while let Some(played) = played.next().await {
        match played {
            Played::Frame(frame) => log.push(frame),
            Played::Response(answer) | Played::Detached(answer, _) => {
                log.push(answer.frame);
                shared.overtaking.answered();
            }
            Played::Disconnect(retry) => log.cut(retry),
            Played::Died(code) => shared.life.die(code),
            Played::Faulty(item) => deliver_item(shared, item, log, ender).await,
        }
    }
}

async fn deliver_item(shared: &Shared, item: Item, log: &StreamLog, ender: &Ender) {
    let stop = match &item {
        Item::Packet(packet) => {
            log.push_packet(packet);
            if packet.kind == Kind::Response {
                shared.overtaking.answered();
            }
            packet.cut.map(|(_, stop)| stop)
        }
        Item::Disconnect(retry) => {
            log.cut(*retry);
            None
        }
        Item::Stop(Stop::Finish) => None,
        Item::Stop(stop) => {
            log.stop(*stop);
            Some(*stop)
        }
        item => {
            pause(ender, item).await;
            None
        }
    };
    if stop == Some(Stop::Hang) {
        shared.life.shutdown.stop.cancelled().await;
    }
}

/// What is to come on a stream. A standalone one has no end of its own: it ends with the session or the server.
pub(super) fn stream_response(
    shared: &Shared,
    session: &Session,
    log: Arc<StreamLog>,
    from: usize,
    ender: Ender,
) -> Response {
    let stop = match log.kind {
        StreamKind::Request => CancellationToken::new(),
        StreamKind::Standalone => shared.life.shutdown.stop.clone(),
    };
    events(Body::stream(log.read(from, [session.ended.clone(), stop], ender)))
}
