//! Playing an exchange in real time.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio_util::sync::CancellationToken;

use crate::{
    mock::engine::{Event, Exchange},
    wire::Id,
};

/// What an exchange gives, in its time.
pub(super) enum Played {
    Frame(Bytes),
    /// The server dies with this exit code.
    Died(u8),
}

/// The frames of an exchange as they fall due, the response last. `first` was taken from the exchange already.
pub(super) fn play(exchange: Box<Exchange>, first: Event) -> impl Stream<Item = Played> + Send {
    stream::unfold(Some((exchange, first)), |state| async {
        let (mut exchange, mut event) = state?;
        loop {
            match event {
                Event::Wait(time) => {
                    tokio::time::sleep(time).await;
                    event = exchange.next_event();
                }
                Event::Send(frame) => {
                    let next = exchange.next_event();
                    return Some((Played::Frame(frame), Some((exchange, next))));
                }
                Event::Finish(frame) => return Some((Played::Frame(frame), None)),
                Event::Exit(code) => return Some((Played::Died(code), None)),
            }
        }
    })
}

/// Why a request is refused whose id belongs to another one (2025-11-25, Basic: Requests).
pub(super) const ID_IN_USE: &str = "a request with this id is still being answered";

/// The requests of one connection or session that are still being answered.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<Id, CancellationToken>>);

impl InFlight {
    /// Enters a request; `None` if its id is in use already.
    pub(super) fn enter(&self, id: &Id) -> Option<CancellationToken> {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.contains_key(id) {
            return None;
        }
        let token = CancellationToken::new();
        requests.insert(id.clone(), token.clone());
        Some(token)
    }

    pub(super) fn leave(&self, id: &Id) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Cancels a request; one that is not under way is ignored (2025-11-25, Cancellation: Behavior Requirements).
    pub(super) fn cancel(&self, id: &Id) {
        if let Some(token) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            token.cancel();
        }
    }
}
