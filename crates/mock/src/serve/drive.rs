//! Runs an exchange in real time.

use std::{
    collections::HashMap,
    future::{poll_fn, ready},
    pin::Pin,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Event, Exchange, NotificationSink, PendingSubscription, ResponseFrame},
    faults::ResponsePart,
    journal::CancelMark,
};
use rehearse_protocol::Id;

/// An output of an exchange.
#[derive(Debug)]
pub(super) enum OutgoingEvent {
    /// A message on the stream.
    Frame(Bytes),
    /// Closes the stream if it can be resumed, after an event with the time to reconnect.
    Disconnect(Option<Duration>),
    /// The response.
    Response(ResponseFrame),
    /// The response; the rest is for [`drive_in_background`].
    Detached(ResponseFrame, Box<Exchange>),
    /// The server exits with this code.
    Exit(u8),
    /// A frame changed by faults.
    Part(ResponsePart),
}

/// The first output of an exchange.
pub(super) enum Started {
    /// The response is available at once.
    Done(ResponseFrame),
    /// The response is available at once; the rest is for [`drive_in_background`].
    Detached(ResponseFrame, Box<Exchange>),
    /// The answer takes time.
    Streaming(ResponseStream),
}

/// The outputs of an exchange when they are due, the response last.
pub(super) type ResponseStream = Pin<Box<dyn Stream<Item = OutgoingEvent> + Send>>;

/// An answer that is not available yet.
pub(super) struct Pending {
    pub(super) id: Id,
    pub(super) events: ResponseStream,
    pub(super) cancel_mark: CancelMark,
    pub(super) ignores_cancellation: bool,
}

/// The rest of an answer in which nothing can come before the response.
pub(super) fn without_notifications(stream: ResponseStream) -> ResponseStream {
    stream.filter(|event| ready(!matches!(event, OutgoingEvent::Frame(_) | OutgoingEvent::Disconnect(_)))).boxed()
}

/// Starts an exchange. `started` is the start time of the mock.
pub(super) fn drive(mut exchange: Box<Exchange>, started: Instant) -> Started {
    match exchange.next_event(started.elapsed()) {
        Event::Finish(answer) => Started::Done(answer),
        Event::Detach(answer) => Started::Detached(answer, exchange),
        first => Started::Streaming(Box::pin(stream::unfold(Some((exchange, Some(first))), move |state| async move {
            let (exchange, first) = state?;
            next_outgoing(exchange, first, started).await
        }))),
    }
}

type State = Option<(Box<Exchange>, Option<Event>)>;

async fn next_outgoing(
    mut exchange: Box<Exchange>,
    mut first: Option<Event>,
    started: Instant,
) -> Option<(OutgoingEvent, State)> {
    loop {
        let event = first.take().unwrap_or_else(|| exchange.next_event(started.elapsed()));
        return Some(match event {
            Event::Wait(time) => {
                tokio::time::sleep(time).await;
                continue;
            }
            Event::Await(limit) => {
                let answered = poll_fn(|context| exchange.poll_answers(context));
                // The exchange checks whether the time is over.
                let _ = tokio::time::timeout(limit, answered).await;
                continue;
            }
            Event::Send(frame) => (OutgoingEvent::Frame(frame), Some((exchange, None))),
            Event::Disconnect(retry) => (OutgoingEvent::Disconnect(retry), Some((exchange, None))),
            Event::Detach(answer) => (OutgoingEvent::Detached(answer, exchange), None),
            Event::Finish(answer) => (OutgoingEvent::Response(answer), None),
            Event::Exit(code) => (OutgoingEvent::Exit(code), None),
        });
    }
}

/// Drives an exchange whose client does not wait; the exit code, if it makes the server exit.
pub(super) async fn drive_in_background(exchange: Box<Exchange>, started: Instant) -> Option<u8> {
    let Started::Streaming(events) = drive(exchange, started) else { return None };
    let exit_code = |event| ready(if let OutgoingEvent::Exit(code) = event { Some(code) } else { None });
    std::pin::pin!(events.filter_map(exit_code)).next().await
}

/// How many notifications of a subscription may wait to be sent.
const MAX_NOTICES: usize = 256;

/// The notifications of a subscription, and its end when `stop` is cancelled or when the client is too slow
/// (2026-07-28, Subscriptions: Graceful Closure).
pub(super) fn drive_subscription(listen: PendingSubscription, stop: CancellationToken) -> ResponseStream {
    let (sender, notices) = mpsc::channel(MAX_NOTICES);
    let subscription = listen.open(Box::new(SubscriptionQueue(Mutex::new(Some(sender)))));
    let sent = stream::unfold((notices, stop), |(mut notices, stop)| async {
        let frame = tokio::select! {
            biased;
            frame = notices.recv() => frame?,
            () = stop.cancelled() => return None,
        };
        Some((OutgoingEvent::Frame(frame), (notices, stop)))
    });
    let end = stream::once(async move {
        let response = OutgoingEvent::Response(ResponseFrame::ok(subscription.closing()));
        stream::iter(subscription.cancellation().map(OutgoingEvent::Frame).into_iter().chain([response]))
    });
    sent.chain(end.flatten()).boxed()
}

/// Notifications of one subscription, until there are too many of them.
#[derive(Debug)]
struct SubscriptionQueue(Mutex<Option<mpsc::Sender<Bytes>>>);

impl NotificationSink for SubscriptionQueue {
    fn push(&self, frame: Bytes) {
        let mut sender = self.0.lock();
        // Without a sender the receiver ends.
        sender.take_if(|sender| sender.try_send(frame).is_err());
    }
}

/// Why a request is refused whose id belongs to another one (2025-11-25, Basic: Requests).
pub(super) const ID_IN_USE: &str = "a request with this id is still being answered";

/// The requests of one connection or session that are still being answered.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<Id, (CancellationToken, CancelMark)>>);

impl InFlight {
    /// Adds a request; `None` if its id is already in use.
    pub(super) fn enter(&self, id: &Id, mark: CancelMark) -> Option<CancellationToken> {
        let mut requests = self.0.lock();
        if requests.contains_key(id) {
            return None;
        }
        let token = CancellationToken::new();
        requests.insert(id.clone(), (token.clone(), mark));
        Some(token)
    }

    pub(super) fn leave(&self, id: &Id) {
        self.0.lock().remove(id);
    }

    /// Removes the request when it is dropped.
    pub(super) fn guard<'a>(&'a self, id: &'a Id) -> InFlightGuard<'a> {
        InFlightGuard(self, id)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Cancels a request; one that is not in progress is ignored (2025-11-25, Cancellation: Behavior Requirements).
    pub(super) fn cancel(&self, id: &Id) {
        if let Some((token, mark)) = self.0.lock().get(id) {
            mark.set();
            token.cancel();
        }
    }
}

/// A request that is in flight as long as this is held.
pub(super) struct InFlightGuard<'a>(&'a InFlight, &'a Id);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        engine::{Decision, Engine, Incoming},
        journal::Journal,
        script::Script,
    };
    use rehearse_document::Source;
    use rehearse_protocol::{Era, Message, Transport};

    fn listen(engine: &Arc<Engine>) -> PendingSubscription {
        let meta =
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        let params = format!(r#"{{"_meta":{{{meta}}},"notifications":{{"toolsListChanged":true}}}}"#);
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#);
        let bytes = Bytes::from(request);
        let incoming = Incoming {
            bytes: &bytes,
            transport: Transport::Memory,
            at: Duration::ZERO,
            headers: None,
            token: None,
            session: None,
            faults: &[],
        };
        let message = Message::parse(&bytes).expect("a request");
        assert_eq!(engine.era_of(&message, None), Era::Modern);
        match engine.receive_modern(message, incoming) {
            Decision::Subscribe(listen) => listen,
            other => panic!("refused: {other:?}"),
        }
    }

    #[tokio::test]
    async fn a_subscription_ends_in_order_when_its_client_does_not_keep_up() {
        let script = || {
            Script::parse(&Source::new(
                "s",
                "tools: [{ name: a, reply: x }]\ncapabilities: { tools: { listChanged: true } }",
            ))
            .expect("a script")
        };
        let engine = Engine::new(script(), 1, Journal::default());
        let stream = drive_subscription(listen(&engine), CancellationToken::new());
        for _ in 0..2 * MAX_NOTICES {
            engine.load(script(), Duration::ZERO);
        }
        let all = tokio::time::timeout(Duration::from_secs(20), stream.collect::<Vec<_>>()).await.expect("it ends");
        assert_eq!(all.len(), MAX_NOTICES + 2, "the frames that fit, the cancellation, the response");
        let Some(OutgoingEvent::Response(answer)) = all.last() else { panic!("no response") };
        assert!(answer.frame.starts_with(br#"{"jsonrpc":"2.0","id":1,"result":"#));
        assert!(
            matches!(&all[MAX_NOTICES], OutgoingEvent::Frame(frame) if frame.windows(9).any(|it| it == b"cancelled"))
        );
    }
}
