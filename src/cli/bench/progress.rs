//! The live line of a benchmark.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rehearse_bench::BenchProgress;

use crate::cli::style::printable;

/// How often the line is written.
const TICK: Duration = Duration::from_millis(250);

/// A line on standard error that says what is being measured, and how fast; nothing without a terminal.
pub(super) struct Progress {
    is_over: Arc<AtomicBool>,
    running: Option<thread::JoinHandle<()>>,
}

impl Progress {
    pub(super) fn start(progress: Arc<BenchProgress>) -> Progress {
        let is_over = Arc::new(AtomicBool::new(!std::io::stderr().is_terminal()));
        let ended = is_over.clone();
        let running = thread::spawn(move || {
            if !ended.load(Ordering::Relaxed) {
                show(&progress, &ended);
            }
        });
        Progress { is_over, running: Some(running) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(running) = self.running.take() {
            running.thread().unpark();
            let _ = running.join();
        }
    }
}

fn show(progress: &BenchProgress, ended: &AtomicBool) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let (mut before, mut at) = (0, Instant::now());
    while !ended.load(Ordering::Relaxed) {
        thread::park_timeout(TICK);
        let (done, now) = (progress.done.load(Ordering::Relaxed), Instant::now());
        let rate = (done - before) as f64 / (now - at).as_secs_f64();
        (before, at) = (done, now);
        bar.set_message(format!("{}: {done} requests, {rate:.0} per second", printable(&progress.phase())));
        bar.tick();
    }
    bar.finish_and_clear();
}
