//! What a run may do, and for how long.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rehearse_client::TraceRecorder;
use rehearse_protocol::Version;
use serde_json::Value;
use tokio::{sync::mpsc::UnboundedSender, time::Instant};

/// What a run may do, and for how long.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The versions to check; all that the server serves if empty.
    pub versions: Vec<Version>,
    /// How long a server may take to start, with its handshake. It is not protocol time.
    pub start_timeout: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long nothing must happen where nothing may happen.
    pub grace: Duration,
    /// How long the whole run may take.
    pub budget: Duration,
    /// Which tools may be called.
    pub tools: ToolPermission,
    /// Tokens for a server that requires them.
    pub tokens: Tokens,
    /// Whether the rows for directories of servers are judged as well.
    pub listing: bool,
    /// The seed of names and ids.
    pub seed: u64,
    /// The rows that are judged, as [`selects`] takes them; all if empty.
    pub rows: Vec<String>,
    /// What receives the progress of the run.
    pub events: Option<UnboundedSender<CheckEvent>>,
    /// Sees every connection.
    pub record_sink: RecordSink,
}

/// Called with the recorder of each connection before its first frame, and the version that the prober asks for.
#[derive(Clone, Default)]
pub struct RecordSink(pub Option<Arc<Sink>>);

/// Takes the recorder of a connection that is opened in a version.
pub type Sink = dyn Fn(Version, &TraceRecorder) + Send + Sync;

impl fmt::Debug for RecordSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordSink").field(&self.0.is_some()).finish()
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEvent {
    /// The server speaks this version, and is probed.
    Probing(Version),
    /// What the probes of this version found is seen once more.
    Confirming(Version),
    /// The version is judged.
    Judged(Version),
}

/// Bearer tokens; what is missing is not tested.
#[derive(Clone, Default)]
pub struct Tokens {
    /// One that the server accepts.
    pub valid: Option<String>,
    /// One that lacks scopes for some requests.
    pub low_scope: Option<String>,
    /// One that has expired.
    pub expired: Option<String>,
    /// One for another server.
    pub wrong_audience: Option<String>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokens")
    }
}

/// Which tools may be called. A tool with `readOnlyHint` and without `openWorldHint` always may.
#[derive(Clone, Debug, Default)]
pub struct ToolPermission {
    /// Names or patterns with `*` of more tools.
    pub allowed: Vec<String>,
    /// Arguments for a tool, by name, in place of generated ones.
    pub arguments: Vec<(String, Value)>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions {
            versions: Vec::new(),
            start_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            grace: Duration::from_millis(300),
            budget: Duration::from_secs(60),
            tools: ToolPermission::default(),
            tokens: Tokens::default(),
            listing: false,
            seed: 1,
            rows: Vec::new(),
            events: None,
            record_sink: RecordSink::default(),
        }
    }
}

impl CheckOptions {
    /// Whether a row is judged.
    pub(crate) fn is_selected(&self, id: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|pattern| selects(pattern, id))
    }

    pub(crate) fn tell(&self, event: CheckEvent) {
        if let Some(events) = &self.events {
            // The receiver may be gone.
            let _ = events.send(event);
        }
    }
}

impl ToolPermission {
    /// Whether this tool, as listed, may be called.
    pub fn allows(&self, tool: &Value) -> bool {
        let name = tool["name"].as_str().unwrap_or_default();
        let hint = |hint: &str| tool["annotations"][hint].as_bool();
        let is_safe = hint("readOnlyHint") == Some(true) && hint("openWorldHint") != Some(true);
        is_safe || self.allowed.iter().any(|pattern| matches(pattern, name))
    }
}

/// Whether a pattern selects a row: it is the beginning of its id, up to a dot or the end, or matches it with `*`.
pub fn selects(pattern: &str, id: &str) -> bool {
    matches(pattern, id) || id.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether a pattern, in which `*` stands for any text, matches a name.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(start) else { return false };
    (0..=name.len()).any(|at| name.get(at..).is_some_and(|name| matches(rest, name)))
}

/// The end of the run, and what its processes have taken to start.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    end: Instant,
    slowest_start: Arc<Mutex<Duration>>,
}

impl Budget {
    pub(crate) fn new(end: Instant) -> Budget {
        Budget { end, slowest_start: Arc::default() }
    }

    /// The longest time from the start of a process to its first message, so far.
    pub(crate) fn slowest_start(&self) -> Duration {
        *self.slowest_start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process has taken so long to start.
    pub(crate) fn note_start(&self, took: Duration) {
        let mut slowest = self.slowest_start.lock().unwrap_or_else(PoisonError::into_inner);
        *slowest = took.max(*slowest);
    }

    /// What is left of a limit.
    pub(crate) fn within(&self, limit: Duration) -> Duration {
        limit.min(self.end.saturating_duration_since(Instant::now()))
    }

    /// Whether nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_called_only_if_it_is_read_only_or_allowed() {
        let permission = ToolPermission { allowed: vec!["get_*".into(), "add".into()], ..ToolPermission::default() };
        let allows = |tool| permission.allows(&tool);
        assert!(allows(json!({ "name": "x", "annotations": { "readOnlyHint": true } })));
        assert!(!allows(json!({ "name": "x", "annotations": { "readOnlyHint": true, "openWorldHint": true } })));
        assert!(!allows(json!({ "name": "x" })) && !allows(json!({ "name": "added" })));
        assert!(allows(json!({ "name": "get_all" })) && allows(json!({ "name": "add" })));
    }
}
