//! The messages that a mock received, with the rule that answered each of them or the reason why none did.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use crossbeam_queue::ArrayQueue;
use serde::Serialize;
use serde_json::value::RawValue;

use rehearse_protocol::{Message, Transport};

/// How many entries are kept; older ones are dropped.
pub const CAPACITY: usize = 4096;
/// How many bytes of requests are kept; older entries are dropped.
pub const CAPACITY_BYTES: usize = 64 << 20;

/// One message that a mock received.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Counted from 1 in the order of arrival.
    pub number: u64,
    /// Time since the mock was started.
    pub at: Duration,
    /// The transport that carried it.
    pub transport: Transport,
    /// The bytes of the message; empty if the request had no body.
    pub request: Bytes,
    /// How the mock handled the message.
    pub handling: Handling,
    /// The names of the faults that were applied to the answer.
    pub faults: Vec<&'static str>,
}

/// How the mock handled a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handling {
    /// This rule of the script answered.
    Rule(Arc<str>),
    /// The protocol answered: a handshake, a list, a notification.
    Protocol,
    /// No rule of the script matched; the closest rule, and why it did not match.
    Unmatched {
        /// The label of the closest rule, if there is one.
        closest: Option<String>,
        /// The reason why it did not match.
        why: String,
    },
    /// The message breaks the protocol.
    Refused(String),
}

impl Entry {
    /// The method of the message, if it has one.
    pub fn method(&self) -> Option<String> {
        Message::parse(&self.request).ok()?.method().map(str::to_owned)
    }
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handling::Rule(label) => f.write_str(label),
            Handling::Protocol => f.write_str("protocol"),
            Handling::Unmatched { closest: Some(closest), why } => {
                write!(f, "no rule matched; closest is {closest}: {why}")
            }
            Handling::Unmatched { closest: None, why } => write!(f, "no rule matched: {why}"),
            Handling::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a> {
            number: u64,
            at_ms: f64,
            transport: Transport,
            method: Option<String>,
            handling: String,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            faults: &'a [&'static str],
            #[serde(skip_serializing_if = "Option::is_none")]
            request: Option<&'a RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            text: Option<String>,
        }
        // The newlines of a valid request are white space between its tokens; one entry is one line.
        let request: Vec<u8> =
            self.request.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        let request = serde_json::from_slice(&request).ok();
        let text =
            (request.is_none() && !self.request.is_empty()).then(|| String::from_utf8_lossy(&self.request).into());
        let at_ms = (self.at.as_secs_f64() * 1_000_000.0).round() / 1000.0;
        let handling = self.handling.to_string();
        let (number, transport, method) = (self.number, self.transport, self.method());
        let faults = &self.faults;
        Line { number, at_ms, transport, method, handling, faults, request, text }.serialize(serializer)
    }
}

/// How many unmatched are kept beyond the latest entries.
const MAX_UNMATCHED: usize = 100;

/// The latest entries, and the first unmatched requests. Writing takes no lock, except for an unmatched request.
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
    unmatched: Mutex<UnmatchedRequests>,
    follower: Option<std::sync::mpsc::Sender<Entry>>,
}

/// The requests that no rule of the script fits: the first of them, and how many there are.
#[derive(Clone, Debug, Default)]
pub struct UnmatchedRequests {
    /// The first of them.
    pub first: Vec<Entry>,
    /// How many there are.
    pub count: u64,
}

impl Default for Journal {
    fn default() -> Self {
        Journal::new(None)
    }
}

impl Journal {
    /// A journal that also sends every new entry to `follower`.
    pub fn new(follower: Option<std::sync::mpsc::Sender<Entry>>) -> Self {
        Journal {
            incoming: ArrayQueue::new(CAPACITY),
            kept: Mutex::default(),
            numbers: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            unmatched: Mutex::default(),
            follower,
        }
    }

    /// Adds an entry for a message without faults.
    pub fn record(&self, at: Duration, transport: Transport, request: &[u8], handling: Handling) {
        self.record_with_faults(at, transport, request, handling, &[]);
    }

    /// Adds an entry. It has a copy of the request, because a slice would keep the whole read buffer alive.
    pub fn record_with_faults(
        &self,
        at: Duration,
        transport: Transport,
        request: &[u8],
        handling: Handling,
        faults: &[&'static str],
    ) {
        let faults = faults.to_vec();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Entry { number, at, transport, request: Bytes::copy_from_slice(request), handling, faults };
        if matches!(entry.handling, Handling::Unmatched { .. }) {
            let mut unmatched = self.unmatched.lock().unwrap_or_else(PoisonError::into_inner);
            unmatched.count += 1;
            if unmatched.first.len() < MAX_UNMATCHED {
                unmatched.first.push(entry.clone());
            }
        }
        if let Some(follower) = &self.follower {
            let _ = follower.send(entry.clone());
        }
        self.bytes.fetch_add(request.len(), Ordering::Relaxed);
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
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(std::iter::from_fn(|| self.take()));
        kept.make_contiguous().sort_by_key(|entry| entry.number);
        let mut bytes: usize = kept.iter().map(|entry| entry.request.len()).sum();
        while kept.len() > CAPACITY || bytes > CAPACITY_BYTES {
            bytes -= kept.pop_front().map_or(bytes, |oldest| oldest.request.len());
        }
        kept.iter().cloned().collect()
    }

    /// The requests that no rule matched, since the journal was created or reset.
    pub fn unmatched(&self) -> UnmatchedRequests {
        self.unmatched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Removes all entries and the unmatched requests. Numbers continue.
    pub fn reset(&self) {
        *self.unmatched.lock().unwrap_or_else(PoisonError::into_inner) = UnmatchedRequests::default();
        self.clear();
    }

    /// Removes all entries, but keeps the unmatched requests for the verification. Numbers continue.
    pub fn clear(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
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
        journal.record(Duration::ZERO, Transport::Stdio, b"x", Handling::Refused("no".into()));
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
