//! What a benchmark sends, how fast, and for how long.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use rehearse_client::{ServerParams, ToolPermission};
use rehearse_protocol::{Operation, Protocol};
use rehearse_report::{Shard, bench::Load};
use tokio_util::sync::CancellationToken;

use crate::BenchSink;

/// A server to measure.
#[derive(Clone, Debug)]
pub struct BenchTarget {
    /// Its name in reports.
    pub name: String,
    /// Its command or URL in reports, without secrets.
    pub described: String,
    /// How to reach it.
    pub params: ServerParams,
    /// Sees the requests and their answers.
    pub sink: Option<BenchSink>,
}

/// How a benchmark runs.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The protocol version to speak.
    pub protocol: Protocol,
    /// Connections or sessions.
    pub connections: usize,
    /// Requests at once on each.
    pub in_flight: usize,
    /// Requests per second to send, even if the server is slower. `None`: each request follows an answer.
    pub rate: Option<f64>,
    /// For how long, or how many requests; for each target, without the warm-up.
    pub extent: Extent,
    /// How long requests are sent before anything is measured.
    pub warmup: Duration,
    /// How long one request may take.
    pub timeout: Duration,
    /// After how many requests to one target, with those of the warm-up, nothing more is sent.
    pub max_total: Option<u64>,
    /// Which tools may be called.
    pub tools: ToolPermission,
    /// The machine of which these are the options, and the load of all of them, if several send it.
    pub shard: Option<(Shard, Load)>,
    /// When to begin to measure; the warm-up is over by then.
    pub start_at: Option<SystemTime>,
    /// Cancelled to end early with what has been measured.
    pub stop: CancellationToken,
    /// How far the run is.
    pub progress: Arc<BenchProgress>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// For so long.
    Duration(Duration),
    /// So many requests.
    Requests(u64),
}

/// One kind of request, and how often it is sent compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchCall {
    /// What is requested. A call without arguments gets those of its schema.
    pub request: Operation,
    /// Its share: of weights 3 and 1, three of four requests are the first.
    pub weight: u32,
}

/// How far a run is. Readers may look at any time.
#[derive(Debug, Default)]
pub struct BenchProgress {
    /// How many requests have been answered or have failed.
    pub done: AtomicU64,
    phase: Mutex<String>,
}

impl BenchProgress {
    /// What is being done.
    pub fn phase(&self) -> String {
        self.phase.lock().clone()
    }

    pub(crate) fn begin(&self, phase: String) {
        *self.phase.lock() = phase;
    }

    pub(crate) fn add_one(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for BenchOptions {
    fn default() -> BenchOptions {
        BenchOptions {
            protocol: Protocol::Auto,
            connections: 1,
            in_flight: 1,
            rate: None,
            extent: Extent::Duration(Duration::from_secs(10)),
            warmup: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            max_total: None,
            tools: ToolPermission::default(),
            shard: None,
            start_at: None,
            stop: CancellationToken::new(),
            progress: Arc::default(),
        }
    }
}

/// What cannot be divided: each part needs at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} {number} is too little for {count} parts: each needs at least one")]
pub struct ShareError {
    option: &'static str,
    number: u64,
    count: usize,
}

impl BenchOptions {
    /// How requests are sent, by all machines together.
    pub fn load(&self) -> Load {
        let (connections, in_flight) = (self.connections, self.in_flight);
        match (self.shard, self.rate) {
            (Some((_, whole)), _) => whole,
            (None, Some(rate)) => Load::Open { connections, in_flight, rate },
            (None, None) => Load::Closed { connections, in_flight },
        }
    }

    /// The options of one of several machines that send this load together: its share of the rate, the requests and the
    /// connections. What is the same on all of them stays: the duration, the warm-up, the requests at once on a connection.
    ///
    /// # Errors
    /// There are not enough requests or connections for all.
    pub fn share(self, shard: Shard) -> Result<BenchOptions, ShareError> {
        let Shard { index, count } = shard;
        let part = |option, number: u64| match number.checked_div(count as u64) {
            Some(0) | None => Err(ShareError { option, number, count }),
            Some(each) => Ok(each + u64::from((index as u64) <= number % count as u64)),
        };
        let connections = part("--connections", self.connections as u64)? as usize;
        let extent = match self.extent {
            Extent::Requests(all) => Extent::Requests(part("--requests", all)?),
            Extent::Duration(whole) => Extent::Duration(whole),
        };
        let max_total = self.max_total.map(|most| part("--max-total", most)).transpose()?;
        let rate = self.rate.map(|rate| rate / count as f64);
        let shard = Some((shard, self.load()));
        Ok(BenchOptions { connections, extent, max_total, rate, shard, ..self })
    }

    /// How much later than those of the first machine the requests of a rate are due, so that those of all machines come
    /// at the intervals of the whole rate.
    pub(crate) fn phase(&self, rate: f64) -> Duration {
        let of = |(Shard { index, count }, _)| (index - 1) as f64 / count as f64 / rate;
        self.shard.map_or(Duration::ZERO, |shard| Duration::from_secs_f64(of(shard)))
    }
}

impl Extent {
    /// The part with a number, from 0, of `count` parts that are as equal as they can be.
    pub(crate) fn part(self, number: usize, count: usize) -> Extent {
        let (number, parts) = (number as u64, count as u64);
        match self {
            Extent::Duration(whole) => Extent::Duration(whole / u32::try_from(count).unwrap_or(u32::MAX)),
            Extent::Requests(all) => Extent::Requests(all * (number + 1) / parts - all * number / parts),
        }
    }
}
