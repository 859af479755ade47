//! The times at which requests of an open loop are due.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rehearse_report::bench::Latencies;
use tokio::sync::Semaphore;

/// Makes requests due at a rate, whatever the server does. Its thread is not the one that sends: timers of an async runtime
/// have a resolution of a millisecond.
pub(crate) struct Pacer {
    begun: Instant,
    interval: Duration,
    /// A permit for each request that is due and not taken.
    due: Semaphore,
    taken: AtomicU64,
}

impl Pacer {
    /// Makes `count` requests due, of which the first is due after a time. The thread returns how much later than planned each of its steps was.
    pub(crate) fn start(rate: f64, count: u64, first: Duration) -> (Arc<Pacer>, thread::JoinHandle<Latencies>) {
        let interval = Duration::from_secs_f64(1.0 / rate);
        let due = Semaphore::new(0);
        let pacer = Arc::new(Pacer { begun: Instant::now() + first, interval, due, taken: AtomicU64::new(0) });
        let running = thread::spawn({
            let pacer = pacer.clone();
            move || pacer.run(count)
        });
        (pacer, running)
    }

    fn run(&self, count: u64) -> Latencies {
        let mut lag = Latencies::default();
        let mut made = 0;
        while made < count && !self.due.is_closed() {
            let now = Instant::now();
            let planned = self.time_of(made);
            if let Some(wait) = planned.checked_duration_since(now).filter(|wait| !wait.is_zero()) {
                thread::sleep(wait);
                continue;
            }
            lag.record(now - planned);
            let passed = ((now - self.begun).as_secs_f64() / self.interval.as_secs_f64()) as u64 + 1;
            let now_due = passed.clamp(made + 1, count) - made;
            self.due.add_permits(usize::try_from(now_due).unwrap_or(usize::MAX));
            made += now_due;
        }
        lag
    }

    fn time_of(&self, number: u64) -> Instant {
        self.begun + Duration::from_secs_f64(self.interval.as_secs_f64() * number as f64)
    }

    /// Waits for the next request that is due; its number and when it was due. `None` after the end.
    pub(crate) async fn next(&self) -> Option<(u64, Instant)> {
        self.due.acquire().await.ok()?.forget();
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        Some((number, self.time_of(number)))
    }

    /// How many have been taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ends it: nothing more is due.
    pub(crate) fn stop(&self) {
        self.due.close();
    }
}
