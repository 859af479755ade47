//! Answers that faults strike: what an exchange gives goes through a chain of faults before it is sent.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use futures_util::{Stream, StreamExt, stream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::play::{Beginning, Played, Way, play, play_listen};
use crate::{
    mock::{
        engine::{Exchange, Faulty, Intake},
        faults::{Chain, Item, Packet, Stop},
        script::{Challenge, HttpAnswer},
    },
    wire::Id,
};

/// What goes out of an answer, in its time; [`Item::Stop`] is the last.
pub(super) type Items = Pin<Box<dyn Stream<Item = Item> + Send>>;

/// An answer with the faults that strike it.
pub(super) struct Afflicted {
    /// The request that is answered; `None` if it is a notification.
    pub(super) id: Option<Id>,
    pub(super) items: Items,
    /// Whether the answer would be there at once without the faults.
    pub(super) at_once: bool,
    /// Cancelled when it gives a message before its response, whatever faults make of that.
    pub(super) begun: CancellationToken,
    pub(super) http: HttpAnswer,
    /// What the client would have to show.
    pub(super) challenge: Option<Challenge>,
    pub(super) ignores_cancellation: bool,
    pub(super) refuses: bool,
}

impl Afflicted {
    /// Begins to play. `stop` ends what has no end of its own; `detach` is given what goes on in the background.
    pub(super) fn new(
        faulty: Faulty,
        started: Instant,
        stop: CancellationToken,
        detach: impl Fn(Box<Exchange>) + Send + 'static,
    ) -> Afflicted {
        let Faulty { intake, id, chain } = faulty;
        let (mut http, mut challenge) = (HttpAnswer::default(), None);
        let (way, at_once): (Way, bool) = match intake {
            Intake::Answer(mut answer) => {
                challenge = answer.challenge.take();
                (at_once(Played::Response(answer)), true)
            }
            Intake::Exchange(exchange) => {
                http = exchange.http();
                match play(exchange, started) {
                    Beginning::Response(answer) => (at_once(Played::Response(answer)), true),
                    Beginning::Detached(answer, exchange) => (at_once(Played::Detached(answer, exchange)), true),
                    Beginning::Under(way) => (way, false),
                }
            }
            Intake::Listen(listen) => (play_listen(listen, stop), false),
            // A batch is struck part by part.
            Intake::Silent | Intake::Cancel(_) | Intake::Faulty(_) | Intake::Batch(_) => {
                (stream::empty().boxed(), true)
            }
        };
        let (ignores_cancellation, refuses) = (chain.ignores_cancellation(), chain.refuses());
        let begun = CancellationToken::new();
        let begins = begun.clone();
        let way = way.inspect(move |played| {
            if matches!(played, Played::Frame(_)) {
                begins.cancel();
            }
        });
        let items = afflict(way.boxed(), chain, detach);
        Afflicted { id, items, at_once, begun, http, challenge, ignores_cancellation, refuses }
    }

    /// As what an exchange gives.
    pub(super) fn into_way(self) -> Way {
        self.items.map(Played::Faulty).boxed()
    }
}

fn at_once(played: Played) -> Way {
    stream::iter([played]).boxed()
}

fn afflict(way: Way, mut chain: Chain, detach: impl Fn(Box<Exchange>) + Send + 'static) -> Items {
    let begun = VecDeque::from(chain.push(Item::Begin));
    let state = Some((way, chain, begun, detach));
    Box::pin(stream::unfold(state, |state| async move {
        let (mut way, mut chain, mut ready, detach) = state?;
        loop {
            match ready.pop_front() {
                Some(last @ Item::Stop(_)) => return Some((last, None)),
                Some(item) => return Some((item, Some((way, chain, ready, detach)))),
                None => {}
            }
            let mut push = |item| ready.extend(chain.push(item));
            match way.next().await {
                Some(Played::Frame(frame)) => push(Item::Packet(Packet::on_the_way(frame))),
                Some(Played::Disconnect(retry)) => push(Item::Disconnect(retry)),
                Some(Played::Response(answer)) => push(Item::Packet(Packet::response(answer.status, answer.frame))),
                Some(Played::Detached(answer, exchange)) => {
                    detach(exchange);
                    push(Item::Packet(Packet::response(answer.status, answer.frame)));
                }
                Some(Played::Died(code)) => push(Item::Stop(Stop::Exit(code))),
                Some(Played::Faulty(item)) => push(item),
                None => push(Item::Stop(Stop::Finish)),
            }
        }
    }))
}

/// Lets answers wait until another one has gone first.
#[derive(Debug, Default)]
pub(super) struct Overtaking {
    waiting: AtomicUsize,
    answered: Notify,
}

impl Overtaking {
    /// An answer has been sent.
    pub(super) fn answered(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.answered.notify_waiters();
        }
    }

    /// Waits until another answer has been sent; `false` if none is within the limit.
    pub(super) async fn give_way(&self, limit: Duration) -> bool {
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        tokio::time::timeout(limit, self.answered.notified()).await.is_ok()
    }
}
