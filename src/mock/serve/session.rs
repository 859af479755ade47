//! Sessions of streamable HTTP in the legacy versions, and their resumable streams
//! (2025-11-25, Transports: Session Management, Resumability and Redelivery).

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use rand::RngExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::play::InFlight;
use crate::{
    mock::engine::Peer,
    wire::{Version, sse::Event},
};

const MAX_SESSIONS: usize = 10_000;
/// How many streams of a session can still be resumed.
const MAX_STREAMS: usize = 64;

/// An id that cannot be guessed: 128 bits from the system's generator, in hex.
pub(super) fn unguessable_id() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

/// The open sessions of a server.
#[derive(Debug, Default)]
pub(super) struct Sessions(RwLock<HashMap<String, Arc<Session>>>);

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: Arc<Peer>,
    pub(super) in_flight: InFlight,
    /// Cancelled when the client ends the session.
    pub(super) ended: CancellationToken,
    streams: Mutex<VecDeque<Arc<StreamLog>>>,
    next_stream: AtomicU64,
}

impl Sessions {
    /// Opens a session for a peer whose handshake was answered; `None` if there are too many.
    pub(super) fn open(&self, peer: Arc<Peer>) -> Option<String> {
        let mut sessions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let id = unguessable_id();
        let session = Session {
            peer,
            in_flight: InFlight::default(),
            ended: CancellationToken::new(),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(0),
        };
        sessions.insert(id.clone(), Arc::new(session));
        Some(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Ends a session: what is under way in it is cancelled.
    pub(super) fn close(&self, id: &str) -> bool {
        let session = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(session) = &session {
            session.ended.cancel();
        }
        session.is_some()
    }
}

impl Session {
    fn primes(&self) -> bool {
        self.peer.version().is_some_and(|version| version >= Version::V2025_11_25)
    }

    /// Opens a stream. Since 2025-11-25 it begins with an event that gives the client an id to resume from.
    pub(super) fn open_stream(&self) -> Arc<StreamLog> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let log =
            Arc::new(StreamLog { number, events: Mutex::default(), length: watch::Sender::new(Length::default()) });
        if self.primes() {
            log.append(Event { data: Some(Bytes::new()), ..Event::default() });
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.len() == MAX_STREAMS {
            streams.pop_front();
        }
        streams.push_back(log.clone());
        log
    }

    /// The stream of an event id, and the position after that event.
    pub(super) fn resume(&self, last_event_id: &str) -> Option<(Arc<StreamLog>, usize)> {
        let (stream, event) = last_event_id.split_once('-')?;
        let (stream, event): (u64, usize) = (stream.parse().ok()?, event.parse().ok()?);
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let log = streams.iter().find(|log| log.number == stream)?;
        (event < log.length.borrow().events).then(|| (log.clone(), event + 1))
    }
}

/// The events of one stream, kept so that a client that lost its connection can read on.
#[derive(Debug)]
pub(super) struct StreamLog {
    number: u64,
    events: Mutex<Vec<Bytes>>,
    length: watch::Sender<Length>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    events: usize,
    complete: bool,
}

impl StreamLog {
    pub(super) fn push(&self, frame: Bytes) {
        self.append(Event::message(frame));
    }

    fn append(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let id = Some(format!("{}-{}", self.number, events.len()));
        events.push(Event { id, ..event }.encode());
        let length = events.len();
        self.length.send_modify(|it| it.events = length);
    }

    /// Nothing more will come.
    pub(super) fn complete(&self) {
        self.length.send_modify(|it| it.complete = true);
    }

    /// The events from a position on, as they come, until the stream is complete or `stop` is cancelled.
    pub(super) fn read(self: Arc<Self>, from: usize, stop: CancellationToken) -> impl Stream<Item = Bytes> + Send {
        let changes = self.length.subscribe();
        stream::unfold((self, changes, from, stop), |(log, mut changes, position, stop)| async move {
            let length = tokio::select! {
                biased;
                length = changes.wait_for(|it| it.events > position || it.complete) => length.map(|it| *it).ok()?,
                () = stop.cancelled() => return None,
            };
            if length.events <= position {
                return None;
            }
            let event = log.events.lock().unwrap_or_else(PoisonError::into_inner)[position].clone();
            Some((event, (log, changes, position + 1, stop)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_visible_ascii_of_128_bits_and_differ() {
        let (a, b) = (unguessable_id(), unguessable_id());
        assert!(a != b && a.len() == 32 && a.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
