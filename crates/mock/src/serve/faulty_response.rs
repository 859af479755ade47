//! Answers with faults: the output of an exchange goes through a chain of faults before it is sent.

use std::{collections::VecDeque, pin::Pin, time::Instant};

use futures_util::{Stream, StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::drive::{OutgoingEvent, ResponseStream, Started, drive, drive_subscription};
use crate::{
    engine::{Decision, Exchange, FaultedDecision},
    faults::{Chain, Packet, ResponsePart, Stop},
    journal::CancelMark,
    script::{Challenge, HttpResponseOptions},
};
use rehearse_protocol::Id;

/// The parts of an answer when they are due; [`ResponsePart::Stop`] is the last.
pub(super) type PartStream = Pin<Box<dyn Stream<Item = ResponsePart> + Send>>;

/// An answer and the faults that apply to it.
pub(super) struct FaultyResponse {
    /// The request that is answered; `None` if it is a notification.
    pub(super) id: Option<Id>,
    pub(super) parts: PartStream,
    /// Whether the answer would be available at once without the faults.
    pub(super) at_once: bool,
    /// Cancelled when the answer has a message before its response, even if a fault drops that message.
    pub(super) begun: CancellationToken,
    pub(super) http: HttpResponseOptions,
    /// The authorization that the client lacks.
    pub(super) challenge: Option<Challenge>,
    pub(super) ignores_cancellation: bool,
    pub(super) cancel_mark: CancelMark,
    pub(super) refuses: bool,
}

impl FaultyResponse {
    /// Starts the answer. `http` is how the server answers where the script says nothing else; `stop` ends subscriptions; `detach` receives exchanges that continue in the background.
    pub(super) fn new(
        faulty: FaultedDecision,
        mut http: HttpResponseOptions,
        started: Instant,
        stop: CancellationToken,
        detach: impl Fn(Box<Exchange>) + Send + 'static,
    ) -> FaultyResponse {
        let FaultedDecision { decision, id, chain } = faulty;
        let mut challenge = None;
        let mut cancel_mark = CancelMark::default();
        let (stream, at_once): (ResponseStream, bool) = match decision {
            Decision::Respond(mut answer) => {
                challenge = answer.challenge.take();
                (at_once(OutgoingEvent::Response(answer)), true)
            }
            Decision::Exchange(exchange) => {
                http = exchange.http();
                cancel_mark = exchange.cancel_mark();
                match drive(exchange, started) {
                    Started::Done(answer) => (at_once(OutgoingEvent::Response(answer)), true),
                    Started::Detached(answer, exchange) => (at_once(OutgoingEvent::Detached(answer, exchange)), true),
                    Started::Streaming(stream) => (stream, false),
                }
            }
            Decision::Subscribe(listen) => (drive_subscription(listen, stop), false),
            // Faults apply to the parts of a batch, not to the batch.
            Decision::Ignore | Decision::Cancel(_) | Decision::Faulted(_) | Decision::Batch(_) => {
                (stream::empty().boxed(), true)
            }
        };
        let (ignores_cancellation, refuses) = (chain.ignores_cancellation(), chain.refuses());
        let begun = CancellationToken::new();
        let begins = begun.clone();
        let stream = stream.inspect(move |event| {
            if matches!(event, OutgoingEvent::Frame(_)) {
                begins.cancel();
            }
        });
        let parts = apply_faults(stream.boxed(), chain, detach);
        FaultyResponse { id, parts, at_once, begun, http, challenge, ignores_cancellation, cancel_mark, refuses }
    }

    /// The parts as a stream of an exchange.
    pub(super) fn into_stream(self) -> ResponseStream {
        self.parts.map(OutgoingEvent::Part).boxed()
    }
}

fn at_once(event: OutgoingEvent) -> ResponseStream {
    stream::iter([event]).boxed()
}

fn apply_faults(
    stream: ResponseStream,
    mut chain: Chain,
    detach: impl Fn(Box<Exchange>) + Send + 'static,
) -> PartStream {
    let begun = VecDeque::from(chain.push(ResponsePart::Begin));
    let state = Some((stream, chain, begun, detach));
    Box::pin(stream::unfold(state, |state| async move {
        let (mut stream, mut chain, mut ready, detach) = state?;
        loop {
            match ready.pop_front() {
                Some(last @ ResponsePart::Stop(_)) => return Some((last, None)),
                Some(part) => return Some((part, Some((stream, chain, ready, detach)))),
                None => {}
            }
            let mut push = |part| ready.extend(chain.push(part));
            match stream.next().await {
                Some(OutgoingEvent::Frame(frame)) => push(ResponsePart::Packet(Packet::on_the_way(frame))),
                Some(OutgoingEvent::Disconnect(retry)) => push(ResponsePart::Disconnect(retry)),
                Some(OutgoingEvent::Response(answer)) => {
                    push(ResponsePart::Packet(Packet::response(answer.status, answer.frame)))
                }
                Some(OutgoingEvent::Detached(answer, exchange)) => {
                    detach(exchange);
                    push(ResponsePart::Packet(Packet::response(answer.status, answer.frame)));
                }
                Some(OutgoingEvent::Exit(code)) => push(ResponsePart::Stop(Stop::Exit(code))),
                Some(OutgoingEvent::Part(part)) => push(part),
                None => push(ResponsePart::Stop(Stop::Finish)),
            }
        }
    }))
}
