//! What sees the requests of a benchmark and their answers.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use rehearse_client::EventSink;
use rehearse_protocol::{Closed, Direction, Event, EventKind, Frame};
use tokio::time::Instant;

/// Sees each request to a server and its answer, as events of one connection. It ends with the last clone.
#[derive(Clone)]
pub struct BenchSink(Arc<Inner>);

struct Inner {
    sink: Box<dyn EventSink>,
    begun: Instant,
}

impl BenchSink {
    /// A connection that begins now.
    pub fn new(sink: Box<dyn EventSink>) -> BenchSink {
        BenchSink(Arc::new(Inner { sink, begun: Instant::now() }))
    }

    pub(crate) fn note(&self, direction: Direction, bytes: &Bytes) {
        self.0.take(|at| EventKind::Frame(Frame::new(direction, at, bytes.clone())));
    }
}

impl Inner {
    fn take(&self, kind: impl FnOnce(std::time::Duration) -> EventKind) {
        let at = self.begun.elapsed();
        self.sink.take(&Event { at, exchange: None, kind: kind(at) });
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.take(|_| EventKind::Closed(Closed::by_client("the benchmark has ended")));
    }
}

impl fmt::Debug for BenchSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BenchSink")
    }
}
