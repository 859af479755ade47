//! How tools were used.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

/// How often one tool was called, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub calls: u64,
    /// Calls whose result says that the tool failed.
    pub tool_errors: u64,
    /// Calls without a result.
    pub failures: u64,
    /// Calls that were answered without the server.
    pub stored: u64,
    /// The time that calls took that reached the server.
    pub time: Duration,
    pub last: Option<SystemTime>,
}

/// What came of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Came {
    Result { is_error: bool },
    Failure,
    Stored,
}

#[derive(Debug, Default)]
pub(super) struct Usages(Mutex<BTreeMap<(Arc<str>, String), Usage>>);

impl Usages {
    pub(super) fn count(&self, server: &Arc<str>, tool: &str, came: Came, time: Duration) {
        let mut usages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = usages.entry((server.clone(), tool.to_owned())).or_default();
        usage.calls += 1;
        usage.last = Some(SystemTime::now());
        match came {
            Came::Result { is_error } => usage.tool_errors += u64::from(is_error),
            Came::Failure => usage.failures += 1,
            Came::Stored => usage.stored += 1,
        }
        usage.time += time;
    }

    pub(super) fn all(&self) -> Vec<(Arc<str>, String, Usage)> {
        let usages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usages.iter().map(|((server, tool), usage)| (server.clone(), tool.clone(), *usage)).collect()
    }
}
