//! Answers over HTTP to requests that stand alone: all of the modern era, and those of legacy clients without a session.

use std::sync::Arc;

use futures_util::{StreamExt, future, stream};
use http::StatusCode;

use super::{
    Shared,
    batch::Batch,
    faulty::{Ender, Opening, Shape, afflicted, respond_with_events, shape},
    http::{empty, events, json},
    play::{Beginning, Played, Way, only_response, play, play_listen},
};
use crate::{
    mock::{
        engine::{Answer, Exchange, Intake},
        faults::{Item, Packet, Stop},
        script::Form,
    },
    transport::server::{Body, Line, Response},
    wire::sse,
};

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The response to what needs no stream.
pub(super) fn simple_response(intake: Intake) -> Response {
    match intake {
        Intake::Answer(answer) => whole(answer),
        _ => empty(StatusCode::ACCEPTED),
    }
}

pub(super) fn whole(answer: Answer) -> Response {
    let mut response = json(status(answer.status), answer.frame);
    if let Some(challenge) = answer.challenge {
        response.extensions_mut().insert(challenge);
    }
    response
}

/// The response to a request that stands alone. When the client goes away, what is under way for it is cancelled
/// (2026-07-28, Cancellation: Transport-Specific Cancellation).
pub(super) async fn lone_response(shared: &Arc<Shared>, intake: Intake, line: Option<&Line>) -> Response {
    match intake {
        Intake::Exchange(exchange) => exchange_response(shared, exchange).await,
        Intake::Listen(listen) => event_response(shared, play_listen(listen, shared.life.shutdown.stop.clone())),
        Intake::Batch(parts) => batch_response(shared, parts, line),
        Intake::Faulty(faulty) => {
            let ender = Ender::new(shared, line);
            match Box::pin(shape(&ender, afflicted(shared, *faulty), Opening::WithTheFirst)).await {
                Shape::Response(response) => response,
                Shape::Events(items, content_type) => respond_with_events(ender, items, content_type.as_deref()),
            }
        }
        intake => simple_response(intake),
    }
}

/// One JSON object if the response is the first thing to come, else a stream that begins with what came first: the
/// status of an error must be its own, however long it took (2026-07-28, Basic: Error Handling; Streamable HTTP: Sending
/// Messages to the Server).
async fn exchange_response(shared: &Arc<Shared>, exchange: Box<Exchange>) -> Response {
    let form = exchange.http().form();
    let mut way = match play(exchange, shared.life.started) {
        Beginning::Response(answer) if form != Form::Sse || answer.status != 200 => return whole(answer),
        Beginning::Response(answer) => stream::iter([Played::Response(answer)]).boxed(),
        Beginning::Detached(answer, exchange) => {
            shared.life.carry_on(exchange);
            return whole(answer);
        }
        Beginning::Under(way) => way,
    };
    match form {
        Form::Sse => return event_response(shared, way),
        Form::Json => way = only_response(way),
        Form::Auto => {}
    }
    loop {
        match way.next().await {
            Some(Played::Response(answer)) => return whole(answer),
            Some(Played::Detached(answer, exchange)) => {
                shared.life.carry_on(exchange);
                return whole(answer);
            }
            Some(first @ Played::Frame(_)) => {
                return event_response(shared, stream::iter([first]).chain(way).boxed());
            }
            // A lone stream cannot be resumed, and a chain of faults is played by `respond_with_events`.
            Some(Played::Disconnect(_) | Played::Faulty(_)) => {}
            Some(Played::Died(code)) => {
                shared.life.die(code);
                // The connection takes this along.
                return future::pending().await;
            }
            None => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

/// A batch without a session (2025-03-26, Basic: Batching). What it cancels itself is not answered.
fn batch_response(shared: &Arc<Shared>, parts: Vec<Intake>, line: Option<&Line>) -> Response {
    let Batch { ready, mut pending, cancelled } = Batch::begin(shared, parts);
    pending.retain(|it| it.ignores_cancellation || !cancelled.contains(&it.id));
    if ready.is_empty() && pending.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    let ready = ready.into_iter().map(|frame| Item::Packet(Packet::response(200, frame)));
    let pending = stream::select_all(pending.into_iter().map(|it| it.played)).filter_map(|played| {
        future::ready(match played {
            Played::Frame(frame) => Some(Item::Packet(Packet::on_the_way(frame))),
            Played::Response(answer) | Played::Detached(answer, _) => {
                Some(Item::Packet(Packet::response(answer.status, answer.frame)))
            }
            Played::Died(code) => Some(Item::Stop(Stop::Exit(code))),
            // Others may still be under way.
            Played::Disconnect(_) | Played::Faulty(Item::Stop(Stop::Finish)) => None,
            Played::Faulty(item) => Some(item),
        })
    });
    respond_with_events(Ender::new(shared, line), stream::iter(ready).chain(pending).boxed(), None)
}

/// A stream of the request's own.
fn event_response(shared: &Arc<Shared>, played: Way) -> Response {
    let shared = shared.clone();
    let frames = played.filter_map(move |played| {
        future::ready(match played {
            Played::Frame(frame) => Some(sse::Event::message(frame).encode()),
            Played::Response(answer) => {
                shared.overtaking.answered();
                Some(sse::Event::message(answer.frame).encode())
            }
            Played::Detached(answer, exchange) => {
                shared.life.carry_on(exchange);
                shared.overtaking.answered();
                Some(sse::Event::message(answer.frame).encode())
            }
            // A chain of faults is played by `respond_with_events`.
            Played::Disconnect(_) | Played::Faulty(_) => None,
            Played::Died(code) => {
                shared.life.die(code);
                None
            }
        })
    });
    events(Body::stream(frames))
}
