//! The usage of tools.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

/// The calls of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All calls.
    pub calls: u64,
    /// Calls for which the tool reported an error.
    pub tool_errors: u64,
    /// Calls without a result.
    pub failures: u64,
    /// Calls that were answered from the cache.
    pub stored: u64,
    /// The total time of calls that reached the server.
    pub time: Duration,
    /// When the tool was last called.
    pub last: Option<SystemTime>,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum CallOutcome {
    Result { is_error: bool },
    Failure,
    Stored,
}

#[derive(Debug, Default)]
pub(super) struct UsageCounter(Mutex<BTreeMap<(Arc<str>, String), Usage>>);

impl UsageCounter {
    pub(super) fn count(&self, server: &Arc<str>, tool: &str, outcome: CallOutcome, time: Duration) {
        let mut usages = self.0.lock();
        let usage = usages.entry((server.clone(), tool.to_owned())).or_default();
        usage.calls += 1;
        usage.last = Some(SystemTime::now());
        match outcome {
            CallOutcome::Result { is_error } => usage.tool_errors += u64::from(is_error),
            CallOutcome::Failure => usage.failures += 1,
            CallOutcome::Stored => usage.stored += 1,
        }
        usage.time += time;
    }

    pub(super) fn all(&self) -> Vec<(Arc<str>, String, Usage)> {
        let usages = self.0.lock();
        usages.iter().map(|((server, tool), usage)| (server.clone(), tool.clone(), *usage)).collect()
    }
}
