//! How far a run is.

use std::{future::pending, io::IsTerminal, time::Duration};

use indicatif::ProgressBar;
use rehearse_check::CheckEvent;
use rehearse_protocol::Version;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, Interval, interval_at},
};

use crate::cli::{
    job::Job,
    style::{print, printable, progress},
};

/// What the first signal prints.
pub(super) const INTERRUPTED: &str = "interrupted: reporting what was found so far\n";

/// How often a line says how far a run is.
const EVERY: Duration = Duration::from_secs(10);

/// Says on standard error what is being checked: on a terminal a live line, else a new line now and then.
pub(super) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    /// When a new line is due; `None` on a terminal.
    lines: Option<Interval>,
    target: String,
    versions: Vec<(Version, &'static str)>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress::with(!std::io::stderr().is_terminal())
    }

    fn with(has_lines: bool) -> Progress {
        let (bar, begun) = (progress("{spinner} {wide_msg} {elapsed}", None), Instant::now());
        let lines = has_lines.then(|| interval_at(begun + EVERY, EVERY));
        Progress { bar, begun, lines, target: String::new(), versions: Vec::new() }
    }

    /// Runs work that sends events, and shows each; `None` if it was interrupted twice.
    pub(super) async fn watch<T, E>(
        &mut self,
        job: &mut Job,
        work: impl Future<Output = T>,
        events: &mut UnboundedReceiver<E>,
        mut show: impl FnMut(&mut Progress, E),
    ) -> Option<T> {
        let shown = async {
            loop {
                tokio::select! {
                    Some(event) = events.recv() => show(self, event),
                    () = self.next_line() => {}
                }
            }
        };
        let done = job.run_with(work, shown).await;
        while let Ok(event) = events.try_recv() {
            show(self, event);
        }
        done
    }

    /// Waits until a new line is due, and prints it; for ever on a terminal. Cancel-safe.
    pub(super) async fn next_line(&mut self) {
        let line = self.line().await;
        print(&line);
    }

    async fn line(&mut self) -> String {
        match &mut self.lines {
            Some(lines) => drop(lines.tick().await),
            None => pending().await,
        }
        format!("{} ({} s)\n", self.bar.message(), self.begun.elapsed().as_secs())
    }

    /// The next server, `number` of `all`.
    pub(super) fn begin(&mut self, target: &str, number: usize, all: usize) {
        // Parts of an act that are tried again are not counted before.
        let all = all.max(number + 1);
        let count = if all > 1 { format!("{}/{all} ", number + 1) } else { String::new() };
        self.target = format!("{count}{}", printable(target));
        self.versions.clear();
        self.bar.set_message(format!("{}: connecting", self.target));
    }

    pub(super) fn show(&mut self, event: CheckEvent) {
        let (version, word) = match event {
            CheckEvent::Listed(_) => return,
            CheckEvent::Probing(version) => (version, "…"),
            CheckEvent::Confirming(version) => (version, " once more…"),
            CheckEvent::Judged(version) => (version, " done"),
        };
        self.versions.retain(|(known, _)| *known != version);
        self.versions.push((version, word));
        self.versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
        let versions: Vec<_> = self.versions.iter().map(|(version, word)| format!("{version}{word}")).collect();
        self.bar.set_message(format!("{}: {}", self.target, versions.join("  ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_due_every_ten_seconds_without_a_terminal() {
        let mut progress = Progress::with(true);
        progress.begin("node server.js", 0, 2);
        assert_eq!(progress.line().await, "1/2 node server.js: connecting (10 s)\n");
        progress.show(CheckEvent::Probing(Version::LATEST));
        assert_eq!(progress.line().await, "1/2 node server.js: 2026-07-28… (20 s)\n");
        progress.begin("node server.js", 2, 2);
        assert_eq!(progress.line().await, "3/3 node server.js: connecting (30 s)\n");
        let mut live = Progress::with(false);
        assert!(tokio::time::timeout(EVERY * 3, live.line()).await.is_err());
    }
}
