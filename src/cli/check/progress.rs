//! The live line of a run.

use indicatif::ProgressBar;
use rehearse_check::CheckEvent;
use rehearse_protocol::Version;

use crate::cli::style::{printable, progress};

/// A line on standard error that says what is being checked; nothing without a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    target: String,
    versions: Vec<(Version, &'static str)>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        let bar = progress("{spinner} {wide_msg} {elapsed}", None);
        Progress { bar, target: String::new(), versions: Vec::new() }
    }

    /// The next server, `number` of `all`.
    pub(super) fn begin(&mut self, target: &str, number: usize, all: usize) {
        let count = if all > 1 { format!("{}/{all} ", number + 1) } else { String::new() };
        self.target = format!("{count}{}", printable(target));
        self.versions.clear();
        self.bar.set_message(format!("{}: connecting", self.target));
    }

    pub(super) fn show(&mut self, event: CheckEvent) {
        let (version, word) = match event {
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
