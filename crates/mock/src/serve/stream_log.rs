//! Streams of events that a client can resume (2025-11-25, Transports: Resumability and Redelivery).

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::connection_closer::ConnectionCloser;
use crate::faults::{Packet, SendStep, SendSteps, Stop};
use rehearse_protocol::sse::Event;

/// How many of its last events a standalone stream keeps.
pub(super) const MAX_KEPT: usize = 1024;
/// How many bytes of events a standalone stream keeps, and all complete streams of a session together.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// In place of the bytes of a stream that is not complete.
const OPEN: usize = usize::MAX;

/// The events of one stream, stored so that a client can resume it after a disconnect.
///
/// A standalone stream can continue forever without a reader, so it keeps only the latest events: a client that reads
/// too late loses the older ones.
#[derive(Debug)]
pub(super) struct StreamLog {
    pub(super) number: u64,
    pub(super) kind: StreamKind,
    kept: Mutex<EventBuffer>,
    length: watch::Sender<StreamProgress>,
    /// The bytes that are kept once the stream is complete, and [`OPEN`] before. A session looks at those of all its
    /// streams whenever it opens one.
    complete_bytes: AtomicUsize,
    /// Cancelled when another connection reads the stream.
    reader: Mutex<CancellationToken>,
}

#[derive(Debug, Default)]
struct EventBuffer {
    /// The position of the first entry.
    first: usize,
    entries: VecDeque<Entry>,
    bytes: usize,
}

/// A piece of a stream.
#[derive(Clone, Debug)]
enum Entry {
    Event(Bytes),
    /// Bytes that are sent once. A client that resumes the stream here gets `again` instead.
    Once {
        steps: SendSteps,
        again: Option<Bytes>,
    },
}

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// The answer to a request; the stream is complete after the response.
    Request,
    /// Messages that belong to no request; it ends with the session or the server.
    Standalone,
}

#[derive(Clone, Copy, Debug, Default)]
struct StreamProgress {
    /// How many events there were.
    events: usize,
    /// How many bytes are kept.
    bytes: usize,
    complete: bool,
}

impl Entry {
    fn size(&self) -> usize {
        match self {
            Entry::Event(bytes) => bytes.len(),
            Entry::Once { again, .. } => again.as_ref().map_or(0, Bytes::len),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl StreamLog {
    /// A stream. If it `primes`, its first event has an id to resume from; `retry` is the time to reconnect.
    pub(super) fn open(number: u64, kind: StreamKind, primes: bool, retry: Option<Duration>) -> StreamLog {
        let log = StreamLog {
            number,
            kind,
            kept: Mutex::default(),
            length: watch::Sender::default(),
            complete_bytes: AtomicUsize::new(OPEN),
            reader: Mutex::default(),
        };
        let retry = retry.map(milliseconds);
        match primes {
            true => log.append(Event { data: Some(Bytes::new()), retry, ..Event::default() }),
            false if retry.is_some() => log.append(Event { retry, ..Event::default() }),
            false => {}
        }
        log
    }

    /// How many events there were.
    pub(super) fn events(&self) -> usize {
        self.length.borrow().events
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.length.borrow().bytes
    }

    /// The same of a complete stream.
    pub(super) fn complete_bytes(&self) -> Option<usize> {
        Some(self.complete_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes != OPEN)
    }

    /// All events of a complete stream without faults.
    pub(super) fn whole(&self) -> Bytes {
        let kept = self.kept.lock();
        let events = kept.entries.iter().filter_map(|entry| match entry {
            Entry::Event(bytes) => Some(&**bytes),
            Entry::Once { .. } => None,
        });
        events.collect::<Vec<_>>().concat().into()
    }

    pub(super) fn push(&self, frame: Bytes) {
        self.append(Event::message(frame));
    }

    fn append(&self, event: Event) {
        self.add(|id| Entry::Event(Event { id: Some(id), ..event }.encode()));
    }

    /// Adds a frame that faults have changed. If it is cut off, a client that resumes the stream gets all of it.
    pub(super) fn push_packet(&self, packet: &Packet) {
        let is_first = self.events() == 0;
        self.add(|id| {
            let event = |data| Event { id: Some(id.clone()), ..Event::message(data) };
            Entry::Once {
                steps: packet.event_steps(event, is_first),
                again: Some(event(packet.bytes.clone()).encode()),
            }
        });
    }

    /// Closes the connection here, after an event with the time to reconnect. Does nothing if the client has no event
    /// id yet, because it could not resume.
    pub(super) fn end_connection(&self, retry: Option<Duration>) {
        if self.events() == 0 {
            return;
        }
        let event = |retry| Event { retry: Some(retry), ..Event::default() }.encode();
        let bytes = retry.map(milliseconds).map_or_else(Bytes::new, event);
        self.add(|_| Entry::Once { steps: SendSteps::new(bytes, Stop::Finish), again: None });
    }

    /// Ends the connection here for a fault.
    pub(super) fn stop(&self, stop: Stop) {
        self.add(|_| Entry::Once { steps: SendSteps::new(Bytes::new(), stop), again: None });
    }

    /// Adds the entry that `entry` creates with its id.
    fn add(&self, entry: impl FnOnce(String) -> Entry) {
        let mut kept = self.kept.lock();
        let entry = entry(format!("{}-{}", self.number, kept.first + kept.entries.len()));
        kept.bytes += entry.size();
        kept.entries.push_back(entry);
        if self.kind == StreamKind::Standalone {
            while kept.entries.len() > MAX_KEPT || (kept.bytes > MAX_BYTES && kept.entries.len() > 1) {
                kept.bytes -= kept.entries.pop_front().map_or(0, |entry| entry.size());
                kept.first += 1;
            }
        }
        self.length.send_modify(|it| {
            it.events = kept.first + kept.entries.len();
            it.bytes = kept.bytes;
        });
    }

    /// Marks the stream as complete.
    pub(super) fn complete(&self) {
        self.length.send_modify(|it| it.complete = true);
        self.complete_bytes.store(self.bytes(), Ordering::Relaxed);
    }

    /// The events from a position on, as they come, until the stream is complete or one of `ends` is cancelled. The
    /// caller that has read it before reads no more: no message goes to two connections (2025-11-25, Transports:
    /// Multiple Connections).
    pub(super) fn read(
        self: Arc<Self>,
        from: usize,
        ends: [CancellationToken; 2],
        closer: ConnectionCloser,
    ) -> impl Stream<Item = Bytes> + Send {
        let replaced = CancellationToken::new();
        std::mem::replace(&mut *self.reader.lock(), replaced.clone()).cancel();
        let (changes, steps) = (self.length.subscribe(), SendSteps::complete(Bytes::new()));
        let reading = StreamReader { log: self, changes, from, position: from, steps, ends, closer };
        stream::unfold((reading, replaced), |(mut reading, replaced)| async {
            let bytes = tokio::select! {
                biased;
                () = replaced.cancelled() => None,
                bytes = reading.next() => bytes,
            };
            Some((bytes?, (reading, replaced)))
        })
    }
}

/// A connection that reads a stream.
struct StreamReader {
    log: Arc<StreamLog>,
    changes: watch::Receiver<StreamProgress>,
    from: usize,
    position: usize,
    /// The rest of an entry.
    steps: SendSteps,
    ends: [CancellationToken; 2],
    closer: ConnectionCloser,
}

impl StreamReader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            for step in self.steps.by_ref() {
                match step {
                    SendStep::Bytes(bytes) => return Some(bytes),
                    SendStep::Wait(time) => tokio::time::sleep(time).await,
                    SendStep::Stop(stop) => {
                        let given_up = async {
                            let _ = self.changes.wait_for(|it| stop == Stop::Hang && it.complete).await;
                        };
                        tokio::select! {
                            () = self.closer.end_stream(stop) => {}
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
            let (position, entry) = {
                let kept = self.log.kept.lock();
                let position = position.max(kept.first);
                (position, kept.entries.get(position - kept.first)?.clone())
            };
            self.position = position + 1;
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
    use futures_util::StreamExt;

    use super::*;
    use crate::{
        engine::Engine,
        journal::Journal,
        script::Script,
        serve::{ListenOptions, MockServer},
    };
    use rehearse_document::Source;

    #[tokio::test]
    async fn a_late_reader_of_a_standalone_stream_gets_the_latest_events() {
        let script = Script::parse(&Source::new("s", "tools: [{ name: a, reply: x }]")).expect("a script");
        let server = MockServer::start(Engine::new(script, 1, Journal::default()), ListenOptions::default());
        let closer = server.await.expect("binds").state.closer(None);
        let log = Arc::new(StreamLog::open(7, StreamKind::Standalone, true, None));
        for number in 1..=MAX_KEPT + 5 {
            log.push(number.to_string().into());
        }
        log.complete();
        assert_eq!(log.events(), MAX_KEPT + 6, "with the priming event");
        for from in [0, 3] {
            let read: Vec<_> = log
                .clone()
                .read(from, [CancellationToken::new(), CancellationToken::new()], closer.clone())
                .collect()
                .await;
            assert_eq!((read.len(), &read[0][..]), (MAX_KEPT, &b"id: 7-6\ndata: 6\n\n"[..]));
        }
    }
}
