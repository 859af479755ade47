//! Sessions of streamable HTTP in the legacy versions, and their resumable streams
//! (2025-11-25, Transports: Session Management, Resumability and Redelivery).

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError, RwLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use rand::RngExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    faulty::{Ender, event_bytes},
    play::InFlight,
};
use crate::{
    mock::{
        engine::{Outlet, Peer},
        faults::{Packet, Step, Steps, Stop},
        script::HttpAnswer,
    },
    wire::{Version, sse::Event},
};

const MAX_SESSIONS: usize = 10_000;
/// How many complete streams of a session can still be resumed, and how many bytes they may have.
const MAX_STREAMS: usize = 64;
/// How many notifications are kept for a client that has not asked for them yet.
const MAX_UNREAD: usize = 1024;
const MAX_STREAM_BYTES: usize = 16 << 20;

/// An id that cannot be guessed: 128 bits from the system's generator, in hex.
pub(super) fn unguessable_id() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

/// The open sessions of a server.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: RwLock<HashMap<String, Arc<Session>>>,
    /// Counts uses, to tell which session was used last.
    clock: AtomicU64,
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: Arc<Peer>,
    pub(super) in_flight: InFlight,
    /// Cancelled when the session ends.
    pub(super) ended: CancellationToken,
    streams: Mutex<VecDeque<Arc<StreamLog>>>,
    /// The stream of what belongs to no request; and whether the client reads it yet.
    standalone: Mutex<Option<(Arc<StreamLog>, bool)>>,
    next_stream: AtomicU64,
    last_used: AtomicU64,
}

impl Sessions {
    /// Opens a session for a peer whose handshake was answered. If there are too many, the one that was idle for the
    /// longest time ends; `None` if none is idle.
    pub(super) fn open(&self, peer: Arc<Peer>) -> Option<String> {
        let mut sessions = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            let idle = sessions.iter().filter(|(_, session)| session.in_flight.is_empty());
            let oldest = idle.min_by_key(|(_, session)| session.last_used.load(Ordering::Relaxed));
            let oldest = oldest.map(|(id, _)| id.clone())?;
            sessions.remove(&oldest)?.ended.cancel();
        }
        let id = unguessable_id();
        let session = Session {
            peer,
            in_flight: InFlight::default(),
            ended: CancellationToken::new(),
            streams: Mutex::default(),
            standalone: Mutex::default(),
            next_stream: AtomicU64::new(0),
            last_used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed)),
        };
        let session = Arc::new(session);
        session.peer.set_outlet(Box::new(Unasked(Arc::downgrade(&session))));
        sessions.insert(id.clone(), session);
        Some(id)
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()?;
        session.last_used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session: what is under way in it is cancelled.
    pub(super) fn close(&self, id: &str) {
        let session = self.by_id.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(session) = session {
            session.ended.cancel();
        }
    }
}

impl Session {
    fn primes(&self) -> bool {
        self.peer.version().is_some_and(|version| version >= Version::V2025_11_25)
    }

    /// Opens the stream of a request, or a standalone one. Since 2025-11-25 it begins with an event that gives the
    /// client an id to resume from, unless `http` says otherwise.
    pub(super) fn open_stream(&self, kind: StreamKind, http: HttpAnswer) -> Arc<StreamLog> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let (entries, length) = (Mutex::default(), watch::Sender::new(Length::default()));
        let log = Arc::new(StreamLog { number, kind, entries, length });
        let retry = http.retry.map(milliseconds);
        match http.priming.unwrap_or_else(|| self.primes()) {
            true => log.append(Event { data: Some(Bytes::new()), retry, ..Event::default() }),
            false if retry.is_some() => log.append(Event { retry, ..Event::default() }),
            false => {}
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut streams);
        streams.push_back(log.clone());
        log
    }

    /// The stream for a client that asks for what belongs to no request: what came before it asked is in it.
    pub(super) fn open_standalone(&self, http: HttpAnswer) -> Arc<StreamLog> {
        let mut standalone = self.standalone.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((log, read)) = standalone.as_mut().filter(|(_, read)| !read) {
            *read = true;
            return log.clone();
        }
        let log = self.open_stream(StreamKind::Standalone, http);
        *standalone = Some((log.clone(), true));
        log
    }

    /// Adds a frame to the stream of what belongs to no request.
    fn push(&self, frame: Bytes) {
        let mut standalone = self.standalone.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || (self.open_stream(StreamKind::Standalone, HttpAnswer::default()), false);
        let (log, read) = standalone.get_or_insert_with(open);
        if *read || log.length.borrow().events < MAX_UNREAD {
            log.push(frame);
        }
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

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Notifications of a session that belong to no request.
#[derive(Debug)]
struct Unasked(Weak<Session>);

impl Outlet for Unasked {
    fn push(&self, frame: Bytes) {
        if let Some(session) = self.0.upgrade() {
            session.push(frame);
        }
    }
}

/// Forgets the oldest complete streams if there are too many of them, or too many bytes in them.
fn forget(streams: &mut VecDeque<Arc<StreamLog>>) {
    let complete = |log: &&Arc<StreamLog>| log.length.borrow().complete;
    let mut count = streams.iter().filter(complete).count();
    let mut bytes: usize = streams.iter().filter(complete).map(|log| log.length.borrow().bytes).sum();
    streams.retain(|log| {
        let length = *log.length.borrow();
        if !length.complete || (count < MAX_STREAMS && bytes <= MAX_STREAM_BYTES) {
            return true;
        }
        count -= 1;
        bytes -= length.bytes;
        false
    });
}

/// The events of one stream, kept so that a client that lost its connection can read on.
#[derive(Debug)]
pub(super) struct StreamLog {
    number: u64,
    pub(super) kind: StreamKind,
    entries: Mutex<Vec<Entry>>,
    length: watch::Sender<Length>,
}

/// A piece of a stream.
#[derive(Clone, Debug)]
enum Entry {
    Event(Bytes),
    /// Something that happens on the way. A client that resumes the stream there sees what it is given again instead.
    Once {
        steps: Steps,
        again: Option<Bytes>,
    },
}

/// What a stream was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// The answer to a request; complete when it was given.
    Request,
    /// Messages that belong to no request; it ends with the session or the server.
    Standalone,
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    events: usize,
    bytes: usize,
    complete: bool,
}

impl StreamLog {
    pub(super) fn push(&self, frame: Bytes) {
        self.append(Event::message(frame));
    }

    fn append(&self, event: Event) {
        self.add(|id| Entry::Event(Event { id: Some(id), ..event }.encode()));
    }

    /// Adds a frame that faults have changed. If it is cut off, a client that resumes the stream is given all of it.
    pub(super) fn push_packet(&self, packet: &Packet) {
        self.add(|id| {
            let encode = |data| Event { id: Some(id.clone()), ..Event::message(data) }.encode();
            let steps = packet.clone().steps(|data, is_whole| event_bytes(encode(data), is_whole));
            Entry::Once { steps, again: Some(encode(packet.bytes.clone())) }
        });
    }

    /// Closes the connection here, after telling the client when to come back.
    /// A client that has no id yet could not come back, and is left where it is.
    pub(super) fn cut(&self, retry: Option<Duration>) {
        if self.length.borrow().events == 0 {
            return;
        }
        let event = |retry| Event { retry: Some(retry), ..Event::default() }.encode();
        let bytes = retry.map(milliseconds).map_or_else(Bytes::new, event);
        self.add(|_| Entry::Once { steps: Steps::new(bytes, Stop::Finish), again: None });
    }

    /// Ends the connection here as a fault wants it.
    pub(super) fn stop(&self, stop: Stop) {
        self.add(|_| Entry::Once { steps: Steps::new(Bytes::new(), stop), again: None });
    }

    /// Adds what `entry` makes of the id for it.
    fn add(&self, entry: impl FnOnce(String) -> Entry) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entry(format!("{}-{}", self.number, entries.len()));
        let added = match &entry {
            Entry::Event(bytes) => bytes.len(),
            Entry::Once { again, .. } => again.as_ref().map_or(0, Bytes::len),
        };
        entries.push(entry);
        self.length.send_modify(|it| {
            it.events += 1;
            it.bytes += added;
        });
    }

    /// Nothing more will come.
    pub(super) fn complete(&self) {
        self.length.send_modify(|it| it.complete = true);
    }

    /// The events from a position on, as they come, until the stream is complete or one of `ends` is cancelled.
    pub(super) fn read(
        self: Arc<Self>,
        from: usize,
        ends: [CancellationToken; 2],
        ender: Ender,
    ) -> impl Stream<Item = Bytes> + Send {
        let (changes, steps) = (self.length.subscribe(), Steps::whole(Bytes::new()));
        let reading = Reading { log: self, changes, from, position: from, steps, ends, ender };
        stream::unfold(reading, |mut reading| async { Some((reading.next().await?, reading)) })
    }
}

/// A connection that reads a stream.
struct Reading {
    log: Arc<StreamLog>,
    changes: watch::Receiver<Length>,
    from: usize,
    position: usize,
    /// What is left of an entry.
    steps: Steps,
    ends: [CancellationToken; 2],
    ender: Ender,
}

impl Reading {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            for step in self.steps.by_ref() {
                match step {
                    Step::Bytes(bytes) => return Some(bytes),
                    Step::Wait(time) => tokio::time::sleep(time).await,
                    Step::Stop(stop) => {
                        let given_up = async {
                            let _ = self.changes.wait_for(|it| stop == Stop::Hang && it.complete).await;
                        };
                        tokio::select! {
                            () = self.ender.end_stream(stop) => {}
                            () = self.ends[0].cancelled() => {}
                            () = given_up => {}
                        }
                        return None;
                    }
                }
            }
            let position = self.position;
            let length = tokio::select! {
                biased;
                length = self.changes.wait_for(|it| it.events > position || it.complete) => {
                    length.map(|it| *it).ok()?
                }
                () = self.ends[0].cancelled() => return None,
                () = self.ends[1].cancelled() => return None,
            };
            if length.events <= position {
                return None;
            }
            let entry = self.log.entries.lock().unwrap_or_else(PoisonError::into_inner)[position].clone();
            self.position += 1;
            let is_resumed_here = position == self.from && position > 0;
            match entry {
                Entry::Once { steps, .. } if !is_resumed_here => self.steps = steps,
                Entry::Event(bytes) | Entry::Once { again: Some(bytes), .. } => return Some(bytes),
                // One of them may follow another.
                Entry::Once { again: None, .. } => self.from = self.position,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn initialized() -> Arc<Peer> {
        Arc::default()
    }

    #[test]
    fn when_there_are_too_many_sessions_the_longest_idle_one_ends() {
        let sessions = Sessions::default();
        let ids: Vec<_> = (0..MAX_SESSIONS).map(|_| sessions.open(initialized()).expect("room")).collect();
        let (busy, used) = (sessions.get(&ids[1]).expect("open"), sessions.get(&ids[0]).expect("open"));
        assert!(busy.in_flight.enter(&1.into()).is_some());
        sessions.get(&ids[2]);
        for id in &ids[3..] {
            sessions.get(id);
        }
        assert!(sessions.open(initialized()).is_some());
        assert!(used.ended.is_cancelled() && sessions.get(&ids[0]).is_none(), "the longest idle one");
        assert!(sessions.get(&ids[1]).is_some(), "a busy one stays");
    }

    #[test]
    fn only_complete_streams_are_forgotten_the_oldest_first() {
        let sessions = Sessions::default();
        let session = sessions.open(initialized()).and_then(|id| sessions.get(&id)).expect("open");
        let pending = session.open_stream(StreamKind::Request, HttpAnswer::default());
        pending.push(Bytes::from_static(b"{}"));
        for _ in 0..2 * MAX_STREAMS {
            let log = session.open_stream(StreamKind::Request, HttpAnswer::default());
            log.push(Bytes::from_static(b"{}"));
            log.complete();
        }
        assert!(session.resume("0-0").is_some(), "still under way");
        assert!(session.resume("1-0").is_none() && session.resume("128-0").is_some());
        let large = session.open_stream(StreamKind::Request, HttpAnswer::default());
        large.push(vec![b'x'; MAX_STREAM_BYTES + 1].into());
        large.complete();
        session.open_stream(StreamKind::Request, HttpAnswer::default());
        assert!(session.resume("128-0").is_none() && session.resume("129-0").is_none());
    }

    #[test]
    fn session_ids_are_visible_ascii_of_128_bits_and_differ() {
        let (a, b) = (unguessable_id(), unguessable_id());
        assert!(a != b && a.len() == 32 && a.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
