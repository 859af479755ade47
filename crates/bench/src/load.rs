//! A load on one server for a while: as many workers as requests may be under way, which share what is recorded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rehearse_report::bench::{Latencies, Measure, Slice};
use tokio::{
    task::JoinSet,
    time::{Instant as Clock, sleep, timeout, timeout_at},
};

use crate::{
    BenchSink,
    connection::{Connection, NoAnswer, Requester},
    operation::Mix,
    options::{BenchOptions, Extent},
    pacer::Pacer,
};

/// When a request of an open loop counts as late.
const LATE: Duration = Duration::from_millis(1);
/// How long to wait after a refusal that does not say how long.
const THROTTLED: Duration = Duration::from_secs(1);

/// What sends requests to one server.
pub(crate) struct Loader {
    pub(crate) mix: Arc<Mix>,
    requesters: Vec<Requester>,
    shared: Arc<Shared>,
    options: BenchOptions,
}

/// What all workers share.
struct Shared {
    next_id: AtomicU64,
    /// How many requests have been sent, with those of the warm-up.
    sent: AtomicU64,
    sink: Option<BenchSink>,
}

/// The part of a load of one slice.
struct Round {
    mix: Arc<Mix>,
    shared: Arc<Shared>,
    options: BenchOptions,
    measures: Mutex<Vec<Measure>>,
    /// When it is over.
    end: Option<Clock>,
    /// How many requests it has.
    most: u64,
    begun: AtomicU64,
    pacer: Option<Arc<Pacer>>,
}

/// What one slice measured.
pub(crate) struct Measured {
    /// One for each operation.
    pub(crate) measures: Vec<Measure>,
    /// How much later than planned requests became due; of an open loop.
    pub(crate) lag: Option<Latencies>,
}

impl Loader {
    pub(crate) fn new(
        connections: &[Connection],
        mix: Arc<Mix>,
        sink: Option<BenchSink>,
        options: &BenchOptions,
    ) -> Loader {
        let requesters = connections.iter().flat_map(|it| (0..options.in_flight).map(|_| it.requester())).collect();
        let (next_id, sent) = (AtomicU64::new(1), AtomicU64::new(0));
        let shared = Arc::new(Shared { next_id, sent, sink });
        Loader { mix, requesters, shared, options: options.clone() }
    }

    /// Whether nothing more can or may be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.requesters.is_empty() || self.shared.is_over(&self.options)
    }

    /// Sends requests for a while, at a rate if there is one.
    ///
    /// The requests of a rate are due without a break, in as many parts: a new slice would begin with a server that has
    /// caught up, and hide a stall.
    pub(crate) async fn run(&mut self, extent: Extent, rate: Option<f64>, parts: usize) -> Measured {
        let phase = |rate| self.options.phase(rate);
        let (limit, most) = match (extent, rate) {
            (Extent::Duration(limit), None) => (Some(limit), u64::MAX),
            (Extent::Duration(limit), Some(rate)) => (Some(limit), due_within(limit.saturating_sub(phase(rate)), rate)),
            (Extent::Requests(count), _) => (None, count),
        };
        let started = Instant::now();
        let (pacer, pacing) = rate.map(|rate| Pacer::start(rate, most, phase(rate))).unzip();
        // What is due at the end of an open loop is still sent.
        let patience = if pacer.is_some() { self.options.timeout } else { Duration::ZERO };
        let round = Arc::new(Round {
            mix: self.mix.clone(),
            shared: self.shared.clone(),
            options: self.options.clone(),
            measures: Mutex::new(self.mix.operations.iter().map(|it| empty_measure(&it.title, parts)).collect()),
            end: limit.map(|limit| Clock::from_std(started + limit + patience)),
            most,
            begun: AtomicU64::new(0),
            pacer: pacer.clone(),
        });
        let mut workers = JoinSet::new();
        for mut requester in self.requesters.drain(..) {
            let round = round.clone();
            workers.spawn(async move {
                let is_lost = round.work(&mut requester).await;
                (!is_lost).then_some(requester)
            });
        }
        while let Some(ended) = workers.join_next().await {
            self.requesters.extend(ended.ok().flatten());
        }
        let seconds = started.elapsed().as_secs_f64();
        if let Some(pacer) = &pacer {
            pacer.stop();
        }
        let lag = pacing.and_then(|pacing| pacing.join().ok());
        let mut measures = std::mem::take(&mut *round.measures.lock());
        if let (Some(pacer), Some(first)) = (&pacer, measures.first_mut()) {
            first.unsent += most.saturating_sub(pacer.taken());
        }
        for measure in &mut measures {
            measure.seconds = seconds;
            for slice in &mut measure.slices {
                slice.seconds = seconds / parts as f64;
                measure.latency.merge(&slice.latency);
            }
        }
        Measured { measures, lag }
    }
}

/// How many requests of a rate are due in a time, of which the first is due at once.
fn due_within(time: Duration, rate: f64) -> u64 {
    // Less than a millionth of an interval is the error of the product.
    (time.as_secs_f64() * rate - 1e-6).ceil() as u64
}

fn empty_measure(name: &str, parts: usize) -> Measure {
    Measure { slices: vec![Slice::default(); parts], ..Measure::named(name) }
}

impl Shared {
    fn is_over(&self, options: &BenchOptions) -> bool {
        let is_spent = options.max_total.is_some_and(|most| self.sent.load(Ordering::Relaxed) >= most);
        is_spent || options.stop.is_cancelled()
    }
}

impl Round {
    /// Sends one request after the other until the end of the slice. True if the connection was lost before.
    async fn work(&self, requester: &mut Requester) -> bool {
        while let Some((number, due)) = self.next().await {
            let sent = self.shared.sent.fetch_add(1, Ordering::Relaxed);
            if self.options.max_total.is_some_and(|most| sent >= most) {
                break;
            }
            let at = self.mix.pick(sent);
            let operation = &self.mix.operations[at];
            let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
            let request = operation.template.request(id);
            let is_late = self.pacer.is_some() && due.elapsed() > LATE;
            let exchanged =
                timeout(self.options.timeout, requester.exchange(&request, self.shared.sink.as_ref())).await;
            let exchanged = exchanged.unwrap_or_else(|_| Err(NoAnswer::Failed("no answer in time".to_owned())));
            let checked = exchanged.and_then(|exchange| {
                let valid = operation.check(&exchange.reply, id);
                valid.map(|()| exchange).map_err(NoAnswer::from)
            });
            self.options.progress.add_one();
            let is_lost = matches!(checked, Err(NoAnswer::Lost(_)));
            let wait = self.record(at, number, due, is_late, checked);
            if is_lost {
                return true;
            }
            if let Some(wait) = wait {
                let rest = self.end.map_or(wait, |end| wait.min(end.saturating_duration_since(Clock::now())));
                self.options.stop.run_until_cancelled(sleep(rest)).await;
            }
        }
        false
    }

    /// The number of the next request and when it is due; `None` at the end.
    async fn next(&self) -> Option<(u64, Instant)> {
        let is_past = self.end.is_some_and(|end| Clock::now() >= end);
        if is_past || self.shared.is_over(&self.options) {
            return None;
        }
        let begun = self.begun.fetch_add(1, Ordering::Relaxed);
        if begun >= self.most {
            return None;
        }
        let Some(pacer) = &self.pacer else { return Some((begun, Instant::now())) };
        let next = self.options.stop.run_until_cancelled(pacer.next());
        match self.end {
            Some(end) => timeout_at(end, next).await.ok()??,
            None => next.await?,
        }
    }

    /// Adds what became of a request. Returns how long to send nothing.
    fn record(
        &self,
        at: usize,
        number: u64,
        due: Instant,
        is_late: bool,
        exchanged: Result<crate::connection::Exchange, NoAnswer>,
    ) -> Option<Duration> {
        let mut measures = self.measures.lock();
        let measure = &mut measures[at];
        measure.late += u64::from(is_late);
        match exchanged {
            Ok(exchange) => {
                let parts = measure.slices.len();
                let part = (number as f64 / self.most as f64 * parts as f64) as usize;
                let latency = exchange.end.into_std().saturating_duration_since(due);
                measure.slices[part.min(parts - 1)].latency.record(latency);
                if let Some(first) = exchange.first_event {
                    let first = first.into_std().saturating_duration_since(due);
                    measure.first_event.get_or_insert_default().record(first);
                }
                None
            }
            Err(NoAnswer::Throttled(wait)) => {
                measure.throttled += 1;
                Some(wait.unwrap_or(THROTTLED))
            }
            Err(error) => {
                *measure.errors.entry(error.to_string()).or_default() += 1;
                if measure.first_error.is_none() {
                    measure.first_error = self.mix.operations[at].error().cloned();
                }
                None
            }
        }
    }
}
