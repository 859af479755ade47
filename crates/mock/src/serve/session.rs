//! Sessions of streamable HTTP in the legacy versions, and their resumable streams
//! (2025-11-25, Transports: Session Management, Resumability and Redelivery).

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use rand::RngExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    drive::InFlight,
    stream_log::{MAX_BYTES, StreamKind, StreamLog},
};
use crate::{
    engine::{LegacySession, NotificationSink},
    journal::Refusal,
    script::{HttpResponseOptions, Token},
};
use rehearse_protocol::Version;

const MAX_SESSIONS: usize = 10_000;
/// How long a session without requests and streams may last when others are opened.
const MAX_IDLE: Duration = Duration::from_secs(60 * 60);
/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// How many complete streams of a session can still be resumed.
const MAX_STREAMS: usize = 64;

/// An id that cannot be guessed: 128 bits from the system's generator, in hex.
pub(super) fn unguessable_id() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

/// Why a session of this id is refused: one that looks like ours may have ended.
pub(super) fn unknown_session(id: &str) -> Refusal {
    match id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Refusal::Expired,
        false => Refusal::Session,
    }
}

/// The open sessions of a server.
#[derive(Debug)]
pub(super) struct Sessions {
    by_id: RwLock<HashMap<String, Arc<Session>>>,
    /// When idle sessions were looked for.
    swept: Mutex<Instant>,
    /// Counts uses, to find the session that was used last.
    clock: AtomicU64,
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) legacy_session: Arc<LegacySession>,
    /// The only client that may use the session, if the server knows its clients.
    owner: Option<String>,
    pub(super) in_flight: InFlight,
    /// Cancelled when the session ends.
    pub(super) ended: CancellationToken,
    streams: Mutex<VecDeque<Arc<StreamLog>>>,
    /// The standalone stream, and whether the client reads it yet.
    standalone: Mutex<Option<(Arc<StreamLog>, bool)>>,
    next_stream: AtomicU64,
    last_used: AtomicU64,
    /// When it was last seen in use.
    seen: Mutex<Instant>,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions { by_id: RwLock::default(), swept: Mutex::new(Instant::now()), clock: AtomicU64::default() }
    }
}

impl Sessions {
    /// Opens a session for a client whose handshake was answered. If there are too many, the one that was idle for the
    /// longest time ends; `false` if none is idle.
    pub(super) fn open(&self, id: &str, legacy_session: Arc<LegacySession>, token: Option<&Token>) -> bool {
        let mut sessions = self.by_id.write();
        self.sweep(&mut sessions);
        if sessions.len() >= MAX_SESSIONS {
            let idle = sessions.iter().filter(|(_, session)| session.in_flight.is_empty());
            let oldest = idle.min_by_key(|(_, session)| session.last_used.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return false };
            if let Some(session) = sessions.remove(&oldest) {
                session.ended.cancel();
            }
        }
        let session = Session {
            legacy_session,
            owner: token.map(|token| token.principal().to_owned()),
            in_flight: InFlight::default(),
            ended: CancellationToken::new(),
            streams: Mutex::default(),
            standalone: Mutex::default(),
            next_stream: AtomicU64::new(0),
            last_used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed)),
            seen: Mutex::new(Instant::now()),
        };
        let session = Arc::new(session);
        session.legacy_session.set_sink(Box::new(UnsolicitedSink(Arc::downgrade(&session))));
        sessions.insert(id.to_owned(), session);
        true
    }

    /// Ends the sessions that were idle for too long.
    fn sweep(&self, sessions: &mut HashMap<String, Arc<Session>>) {
        let mut swept = self.swept.lock();
        if swept.elapsed() < SWEEP {
            return;
        }
        *swept = Instant::now();
        sessions.retain(|_, session| {
            let mut seen = session.seen.lock();
            if !session.is_idle() {
                *seen = Instant::now();
            }
            let is_kept = seen.elapsed() < MAX_IDLE;
            if !is_kept {
                session.ended.cancel();
            }
            is_kept
        });
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.read().get(id).cloned()?;
        session.last_used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        *session.seen.lock() = Instant::now();
        Some(session)
    }

    /// The session that was used last.
    pub(super) fn latest(&self) -> Option<Arc<Session>> {
        let sessions = self.by_id.read();
        sessions.values().max_by_key(|session| session.last_used.load(Ordering::Relaxed)).cloned()
    }

    /// Ends a session and cancels its exchanges.
    pub(super) fn close(&self, id: &str) {
        let session = self.by_id.write().remove(id);
        if let Some(session) = session {
            session.ended.cancel();
        }
    }
}

impl Session {
    /// Whether this client opened the session.
    pub(super) fn belongs_to(&self, token: Option<&Token>) -> bool {
        self.owner.as_deref() == token.map(Token::principal)
    }

    /// Whether it has neither requests in progress nor a stream with a reader.
    fn is_idle(&self) -> bool {
        // A reader holds the stream, as do the lists of the session.
        let is_read = |log: &Arc<StreamLog>| Arc::strong_count(log) > 2;
        self.in_flight.is_empty() && self.standalone.lock().as_ref().is_none_or(|(log, _)| !is_read(log))
    }

    fn primes(&self) -> bool {
        self.legacy_session.version().is_some_and(|version| version >= Version::V2025_11_25)
    }

    /// Opens the stream of a request, or a standalone one. Since 2025-11-25 it begins with an event that gives the
    /// client an id to resume from, unless `http` says otherwise.
    pub(super) fn open_stream(&self, kind: StreamKind, http: HttpResponseOptions) -> Arc<StreamLog> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let primes = http.priming.unwrap_or_else(|| self.primes());
        let log = Arc::new(StreamLog::open(number, kind, primes, http.retry));
        let mut streams = self.streams.lock();
        drop_oldest(&mut streams);
        streams.push_back(log.clone());
        log
    }

    /// The standalone stream, for a client that opens it. It contains earlier messages. The previous standalone stream
    /// ends.
    pub(super) fn open_standalone(&self, http: HttpResponseOptions) -> Arc<StreamLog> {
        let mut standalone = self.standalone.lock();
        if let Some((log, read)) = standalone.as_mut().filter(|(_, read)| !read) {
            *read = true;
            return log.clone();
        }
        let log = self.open_stream(StreamKind::Standalone, http);
        if let Some((before, _)) = standalone.replace((log.clone(), true)) {
            before.complete();
        }
        log
    }

    /// Adds a frame to the standalone stream.
    fn push(&self, frame: Bytes) {
        let mut standalone = self.standalone.lock();
        let open = || (self.open_stream(StreamKind::Standalone, HttpResponseOptions::default()), false);
        standalone.get_or_insert_with(open).0.push(frame);
    }

    /// The stream of an event id, and the position after that event.
    pub(super) fn resume(&self, last_event_id: &str) -> Option<(Arc<StreamLog>, usize)> {
        let (stream, event) = last_event_id.split_once('-')?;
        let (stream, event): (u64, usize) = (stream.parse().ok()?, event.parse().ok()?);
        let streams = self.streams.lock();
        let log = streams.iter().find(|log| log.number == stream)?;
        (event < log.events()).then(|| (log.clone(), event + 1))
    }
}

/// Notifications of a session that belong to no request.
#[derive(Debug)]
struct UnsolicitedSink(Weak<Session>);

impl NotificationSink for UnsolicitedSink {
    fn push(&self, frame: Bytes) {
        if let Some(session) = self.0.upgrade() {
            session.push(frame);
        }
    }
}

/// Drops the oldest complete streams if there are too many of them, or too many bytes in them.
fn drop_oldest(streams: &mut VecDeque<Arc<StreamLog>>) {
    let complete = streams.iter().filter_map(|log| log.complete_bytes());
    let (mut count, mut bytes) = complete.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
    streams.retain(|log| {
        if count < MAX_STREAMS && bytes <= MAX_BYTES {
            return true;
        }
        let Some(dropped) = log.complete_bytes() else { return true };
        count -= 1;
        bytes -= dropped;
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(sessions: &Sessions) -> String {
        let id = unguessable_id();
        assert!(sessions.open(&id, Arc::default(), None));
        id
    }

    #[test]
    fn when_there_are_too_many_sessions_the_longest_idle_one_ends() {
        let sessions = Sessions::default();
        let ids: Vec<_> = (0..MAX_SESSIONS).map(|_| opened(&sessions)).collect();
        let (busy, used) = (sessions.get(&ids[1]).expect("open"), sessions.get(&ids[0]).expect("open"));
        assert!(busy.in_flight.enter(&1.into(), Default::default()).is_some());
        sessions.get(&ids[2]);
        for id in &ids[3..] {
            sessions.get(id);
        }
        opened(&sessions);
        assert!(used.ended.is_cancelled() && sessions.get(&ids[0]).is_none(), "the longest idle one");
        assert!(sessions.get(&ids[1]).is_some(), "a busy one stays");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_nothing_uses_for_an_hour_ends_when_another_is_opened() {
        let sessions = Sessions::default();
        let [idle, busy, read] = [(); 3].map(|()| opened(&sessions));
        let session = sessions.get(&busy).expect("open");
        assert!(session.in_flight.enter(&1.into(), Default::default()).is_some());
        let reader = sessions.get(&read).expect("open").open_standalone(HttpResponseOptions::default());
        tokio::time::advance(MAX_IDLE).await;
        opened(&sessions);
        let is_open = |id: &str| sessions.by_id.read().contains_key(id);
        assert!(!is_open(&idle) && is_open(&busy) && is_open(&read));
        drop(reader);
        tokio::time::advance(SWEEP).await;
        opened(&sessions);
        assert!(is_open(&read), "it was read until a minute ago");
        tokio::time::advance(MAX_IDLE).await;
        opened(&sessions);
        assert!(!is_open(&read) && is_open(&busy));
    }

    #[test]
    fn only_complete_streams_are_forgotten_the_oldest_first() {
        let sessions = Sessions::default();
        let session = sessions.get(&opened(&sessions)).expect("open");
        let pending = session.open_stream(StreamKind::Request, HttpResponseOptions::default());
        pending.push(Bytes::from_static(b"{}"));
        for _ in 0..2 * MAX_STREAMS {
            let log = session.open_stream(StreamKind::Request, HttpResponseOptions::default());
            log.push(Bytes::from_static(b"{}"));
            log.complete();
        }
        assert!(session.resume("0-0").is_some(), "still under way");
        assert!(session.resume("1-0").is_none() && session.resume("128-0").is_some());
        let large = session.open_stream(StreamKind::Request, HttpResponseOptions::default());
        large.push(vec![b'x'; MAX_BYTES + 1].into());
        large.complete();
        session.open_stream(StreamKind::Request, HttpResponseOptions::default());
        assert!(session.resume("128-0").is_none() && session.resume("129-0").is_none());
    }

    #[test]
    fn standalone_streams_do_not_grow_without_bound_in_number_or_in_length() {
        let sessions = Sessions::default();
        let session = sessions.get(&opened(&sessions)).expect("open");
        for is_read in [false, true] {
            if is_read {
                session.open_standalone(HttpResponseOptions::default());
            }
            for _ in 0..20 {
                session.push(vec![b'x'; MAX_BYTES / 10].into());
            }
            let log = session.standalone.lock().clone().expect("a stream").0;
            assert!(log.bytes() <= MAX_BYTES && log.bytes() > MAX_BYTES / 2, "{}", log.bytes());
        }
        for _ in 0..3 * MAX_STREAMS {
            session.open_standalone(HttpResponseOptions::default());
        }
        assert!(session.streams.lock().len() <= MAX_STREAMS + 1);
    }

    #[test]
    fn session_ids_are_visible_ascii_of_128_bits_and_differ() {
        let (a, b) = (unguessable_id(), unguessable_id());
        assert!(a != b && a.len() == 32 && a.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
