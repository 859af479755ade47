//! The live line of a benchmark.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use rehearse_bench::BenchProgress;

use crate::cli::style::{self, printable};

/// How often the line is written.
const TICK: Duration = Duration::from_millis(250);

/// Says on standard error what is being measured, and how fast; nothing without a terminal. Never returns.
pub(super) async fn show(progress: &BenchProgress) {
    let bar = style::progress("{spinner} {wide_msg} {elapsed}", None);
    let (mut before, mut at) = (0, Instant::now());
    loop {
        tokio::time::sleep(TICK).await;
        let (done, now) = (progress.done.load(Ordering::Relaxed), Instant::now());
        let rate = (done - before) as f64 / (now - at).as_secs_f64();
        (before, at) = (done, now);
        bar.set_message(format!("{}: {done} requests, {rate:.0} per second", printable(&progress.phase())));
    }
}
