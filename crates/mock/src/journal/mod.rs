//! The messages that a mock received, with the rule that answered each of them or the reason why none did.

mod answer;
mod entry;
mod refusal;

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::SyncSender,
    },
    time::Duration,
};

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use parking_lot::Mutex;

pub use answer::{Answer, AnswerKind};
pub(crate) use answer::{CallRecord, CancelMark};
pub use entry::{Entry, Handling, JournalEvent};
pub use refusal::Refusal;
use rehearse_protocol::Transport;

/// How many entries are kept; older ones are dropped.
pub const CAPACITY: usize = 4096;
/// How many bytes of requests are kept; older entries are dropped.
pub const CAPACITY_BYTES: usize = 64 << 20;

/// How many entries of each kind of failure are kept beyond the latest entries.
const MAX_FAILURES: usize = 100;

/// The latest entries, and the first that fail the verification. Writing takes no lock, except for those.
///
/// ```
/// use std::time::Duration;
/// use rehearse_mock::journal::{Handling, Journal};
/// use rehearse_protocol::Transport;
///
/// let journal = Journal::default();
/// let request = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// journal.record(Duration::ZERO, Transport::Http, request, Handling::Protocol);
/// assert_eq!(journal.entries()[0].method().as_deref(), Some("ping"));
/// ```
#[derive(Debug)]
pub struct Journal {
    incoming: ArrayQueue<Entry>,
    kept: Mutex<VecDeque<Entry>>,
    numbers: AtomicU64,
    /// How many bytes of requests are in `incoming`.
    bytes: AtomicUsize,
    failures: Mutex<Failures>,
    follower: Option<SyncSender<JournalEvent>>,
    connections: AtomicU64,
}

/// A message that the mock has received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) at: Duration,
    pub(crate) transport: Transport,
    pub(crate) session: Option<&'a str>,
    pub(crate) request: &'a [u8],
    /// The HTTP method and the path, if the request has no message.
    pub(crate) http: Option<(&'a http::Method, &'a str)>,
    pub(crate) faults: &'a [&'static str],
}

/// The entries that can fail the verification.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// Messages that no correct client sends.
    pub violations: FirstEntries,
    /// Requests that nothing in the script answers, and calls with arguments that its schemas do not allow.
    pub unexpected: FirstEntries,
}

/// The first entries of a kind, and how many there are.
#[derive(Clone, Debug, Default)]
pub struct FirstEntries {
    /// The first of them.
    pub first: Vec<Entry>,
    /// How many there are.
    pub count: u64,
}

impl FirstEntries {
    fn add(&mut self, entry: &Entry) {
        self.count += 1;
        if self.first.len() < MAX_FAILURES {
            self.first.push(entry.clone());
        }
    }

    /// How many there are beyond the first.
    pub fn more(&self) -> u64 {
        self.count - self.first.len() as u64
    }
}

impl Default for Journal {
    fn default() -> Self {
        Journal::new(None)
    }
}

impl Journal {
    /// A journal that also sends every new entry to `follower`. If the follower is slow, the mock waits for it.
    pub fn new(follower: Option<SyncSender<JournalEvent>>) -> Self {
        Journal {
            incoming: ArrayQueue::new(CAPACITY),
            kept: Mutex::default(),
            numbers: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            failures: Mutex::default(),
            follower,
            connections: AtomicU64::new(0),
        }
    }

    /// Adds an entry for a message without a session, faults and an answer.
    pub fn record(&self, at: Duration, transport: Transport, request: &[u8], handling: Handling) {
        let received = Received { at, transport, session: None, request, http: None, faults: &[] };
        self.add(received, handling, None, None);
    }

    /// The label of a new connection that has no session id.
    pub(crate) fn connection(&self, transport: Transport) -> String {
        format!("{transport}-{}", self.connections.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adds an entry that is complete.
    pub(crate) fn add(
        &self,
        received: Received<'_>,
        handling: Handling,
        reason: Option<String>,
        answer: Option<Answer>,
    ) {
        let answer = Arc::new(answer.map_or_else(OnceLock::new, OnceLock::from));
        let entry = self.entry(received, handling, reason, answer);
        if let Some(follower) = &self.follower {
            let _ = follower.send(JournalEvent::Received(entry.clone()));
        }
        self.push(entry);
    }

    /// Adds an entry for a call that a rule answers.
    pub(crate) fn begin(&self, received: Received<'_>, handling: Handling) -> CallRecord {
        let answer = Arc::<OnceLock<Answer>>::default();
        let entry = self.entry(received, handling, None, answer.clone());
        let follower = self.follower.as_ref().map(|follower| (follower.clone(), entry.clone(), false));
        self.push(entry);
        CallRecord { answer, cancelled: CancelMark::default(), follower }
    }

    /// An entry. It has a copy of the request, because a slice would keep the whole read buffer alive.
    fn entry(
        &self,
        received: Received<'_>,
        handling: Handling,
        reason: Option<String>,
        answer: Arc<OnceLock<Answer>>,
    ) -> Entry {
        let Received { at, transport, session, request, http, faults } = received;
        Entry {
            number: self.numbers.fetch_add(1, Ordering::Relaxed) + 1,
            at,
            transport,
            session: session.map(Into::into),
            http: http.map(|(method, path)| format!("{method} {path}")),
            request: Bytes::copy_from_slice(request),
            handling,
            reason,
            faults: faults.to_vec(),
            answer,
        }
    }

    fn push(&self, entry: Entry) {
        match &entry.handling {
            Handling::Unmatched { .. } | Handling::Refused { refusal: Refusal::Arguments, .. } => {
                self.failures.lock().unexpected.add(&entry);
            }
            Handling::Refused { refusal, .. } if refusal.is_violation() => self.failures.lock().violations.add(&entry),
            _ => {}
        }
        self.bytes.fetch_add(entry.request.len(), Ordering::Relaxed);
        if let Some(oldest) = self.incoming.force_push(entry) {
            self.bytes.fetch_sub(oldest.request.len(), Ordering::Relaxed);
        }
        while self.bytes.load(Ordering::Relaxed) > CAPACITY_BYTES && self.take().is_some() {}
    }

    fn take(&self) -> Option<Entry> {
        let entry = self.incoming.pop()?;
        self.bytes.fetch_sub(entry.request.len(), Ordering::Relaxed);
        Some(entry)
    }

    /// The kept entries in the order of arrival.
    pub fn entries(&self) -> Vec<Entry> {
        let mut kept = self.kept.lock();
        kept.extend(std::iter::from_fn(|| self.take()));
        kept.make_contiguous().sort_by_key(|entry| entry.number);
        let mut bytes: usize = kept.iter().map(|entry| entry.request.len()).sum();
        while kept.len() > CAPACITY || bytes > CAPACITY_BYTES {
            bytes -= kept.pop_front().map_or(bytes, |oldest| oldest.request.len());
        }
        kept.iter().cloned().collect()
    }

    /// What can fail the verification, since the journal was created or reset.
    pub fn failures(&self) -> Failures {
        self.failures.lock().clone()
    }

    /// Removes all entries and failures. Numbers continue.
    pub fn reset(&self) {
        *self.failures.lock() = Failures::default();
        self.clear();
    }

    /// Removes all entries, but keeps the failures for the verification. Numbers continue.
    pub fn clear(&self) {
        let mut kept = self.kept.lock();
        while self.take().is_some() {}
        kept.clear();
    }

    /// How many messages were received so far.
    pub fn len(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Whether no message was received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_entries_are_kept_in_order_and_reading_twice_gives_the_same() {
        let journal = Journal::default();
        for number in 0..CAPACITY + 10 {
            let request = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#));
            journal.record(Duration::ZERO, Transport::Stdio, &request, Handling::Protocol);
        }
        let entries = journal.entries();
        assert_eq!((entries.len(), entries[0].number, journal.len()), (CAPACITY, 11, CAPACITY as u64 + 10));
        journal.record(Duration::ZERO, Transport::Stdio, b"x", Handling::refused(Refusal::Malformed, "no"));
        assert_eq!((journal.entries().len(), journal.entries()[0].number), (CAPACITY, 12));
    }

    #[test]
    fn large_requests_push_out_older_ones() {
        let journal = Journal::default();
        let large = vec![b'x'; CAPACITY_BYTES / 4];
        for _ in 0..10 {
            journal.record(Duration::ZERO, Transport::Http, &large, Handling::Protocol);
        }
        let numbers = |journal: &Journal| journal.entries().iter().map(|entry| entry.number).collect::<Vec<_>>();
        assert_eq!(numbers(&journal), [7, 8, 9, 10]);
        journal.record(Duration::ZERO, Transport::Http, &large, Handling::Protocol);
        assert_eq!(numbers(&journal), [8, 9, 10, 11]);
    }

    #[test]
    fn an_entry_is_one_line_of_json_with_the_request_as_it_came() {
        let journal = Journal::default();
        let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\n\"params\":{\"x\":1.0}}";
        journal.record(Duration::from_micros(1_500_123), Transport::Ws, request, Handling::Rule("tools.a".into()));
        let line = serde_json::to_string(&journal.entries()[0]).expect("serialises");
        assert_eq!(
            line,
            r#"{"number":1,"atMs":1500.123,"transport":"ws","method":"m","handling":"tools.a","request":{"jsonrpc":"2.0","id":1,"method":"m", "params":{"x":1.0}}}"#
        );
    }
}
