//! What a run may do, and for how long.

use std::{
    fmt,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rehearse_client::{ClientRecorder, ToolPermission};
use rehearse_conformance::{Check, Material, Role, checks_of};
use rehearse_document::text::matches_wildcard;
use rehearse_protocol::{Closed, Trace, Version};
use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc::UnboundedSender},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// What a run may do, and for how long.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The versions to check; all that the server serves if empty.
    pub versions: Vec<Version>,
    /// How long a server may take to start, with its handshake. It is not protocol time.
    pub start_timeout: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long to wait before silence counts as silence.
    pub grace: Duration,
    /// How long the whole run may take.
    pub budget: Duration,
    /// Which tools may be called.
    pub tools: ToolPermission,
    /// Names or patterns with `*` of prompts that may get odd values and optional arguments. Others are only got with what
    /// they require.
    pub varied_prompts: Vec<String>,
    /// Tokens for a server that requires them.
    pub tokens: Tokens,
    /// Whether violations count that come from an SDK, whatever the author of the server does.
    pub counts_sdk: bool,
    /// Whether it is said what has to be done for the newest version.
    pub migrates: bool,
    /// Whether harm counts as a failure or a warning, not only as information.
    pub counts_harm: bool,
    /// The seed of names and ids.
    pub seed: u64,
    /// The checks that are judged, as [`selects`] takes them; all if empty. What no judge of them looks at is not sent.
    pub checks: Vec<String>,
    /// What receives the progress of the run.
    pub events: Option<UnboundedSender<CheckEvent>>,
    /// Sees every connection.
    pub record_sink: RecordSink,
}

/// Called with the recorder of each connection before its first frame, and the version that the prober asks for.
#[derive(Clone, Default)]
pub struct RecordSink(pub Option<Arc<Sink>>);

/// Takes the recorder of a connection that is opened in a version.
pub type Sink = dyn Fn(Version, &ClientRecorder) + Send + Sync;

impl fmt::Debug for RecordSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordSink").field(&self.0.is_some()).finish()
    }
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckEvent {
    /// The server speaks this version, and is probed.
    Probing(Version),
    /// The names of all tools that the server lists in a version.
    Listed(Vec<String>),
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

impl Default for CheckOptions {
    fn default() -> Self {
        CheckOptions {
            versions: Vec::new(),
            start_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(10),
            grace: Duration::from_millis(300),
            budget: Duration::from_secs(3 * 60),
            tools: ToolPermission::default(),
            varied_prompts: Vec::new(),
            tokens: Tokens::default(),
            counts_sdk: false,
            migrates: false,
            counts_harm: false,
            seed: 1,
            checks: Vec::new(),
            events: None,
            record_sink: RecordSink::default(),
        }
    }
}

impl CheckOptions {
    /// Whether a check is judged.
    pub(crate) fn is_selected(&self, id: &str) -> bool {
        self.checks.is_empty() || self.checks.iter().any(|pattern| selects(pattern, id))
    }

    /// The checks of servers that are judged.
    pub(crate) fn selected(&self) -> impl Iterator<Item = &'static Check> {
        checks_of(Role::Server).filter(|check| self.is_selected(&check.id))
    }

    /// Whether a listed prompt may get odd values and optional arguments: like a tool, it may pass them on to others.
    pub(crate) fn varies(&self, prompt: &Value) -> bool {
        let name = prompt["name"].as_str();
        name.is_some_and(|name| self.varied_prompts.iter().any(|pattern| matches_wildcard(pattern, name)))
    }

    /// After what time a request without an answer is a finding.
    pub(crate) fn patience(&self) -> Duration {
        self.request_timeout * 5 / 2
    }

    /// Tells which tools the server lists, if all are known.
    pub(crate) fn tell_tools(&self, material: &Material) {
        const METHOD: &str = "tools/list";
        let is_large = material.large.iter().any(|(method, _)| *method == METHOD);
        if !is_large && !material.failing.contains(&METHOD) {
            let names = material.tools.iter().filter_map(|tool| tool["name"].as_str());
            self.tell(CheckEvent::Listed(names.map(str::to_owned).collect()));
        }
    }

    pub(crate) fn tell(&self, event: CheckEvent) {
        if let Some(events) = &self.events {
            // The receiver may be gone.
            let _ = events.send(event);
        }
    }
}

/// Whether a pattern selects a check: it is the beginning of its id, up to a dot or the end, or matches it with `*`.
pub fn selects(pattern: &str, id: &str) -> bool {
    matches_wildcard(pattern, id) || id.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
}

/// How long after its time a run may take to end.
const LONGEST_END: Duration = Duration::from_millis(700);
/// How many bytes the traces of a run have in all, but for the last ones.
pub(crate) const MOST_KEPT: usize = 64 << 20;

/// The beginning and the end of the run, and what its processes have taken to start.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    began: Instant,
    end: Instant,
    starts: Arc<Mutex<Starts>>,
    /// The bytes of the traces that are kept.
    kept: Arc<AtomicUsize>,
    silence: Arc<Mutex<Silence>>,
    /// Told when the first process has answered.
    started: Arc<Notify>,
    /// Every connection, with the version that the prober asks for.
    connections: Arc<Mutex<Vec<(Version, ClientRecorder)>>>,
}

/// How the processes of a run started so far.
#[derive(Debug, Default)]
struct Starts {
    slowest: Duration,
    has_answered: bool,
    /// Whether one has said nothing within the whole time for its start.
    has_hung: bool,
}

/// How long no connection of a run has got an answer, but to its handshake.
#[derive(Debug)]
struct Silence {
    since: Instant,
    /// Whether that was long enough to be a finding.
    is_found: bool,
}

impl Budget {
    pub(crate) fn new(began: Instant, time: Duration) -> Budget {
        let end = began + time;
        let silence = Arc::new(Mutex::new(Silence { since: began, is_found: false }));
        let (starts, kept, started, connections) = Default::default();
        Budget { began, end, starts, kept, silence, started, connections }
    }

    /// When the clock of all connections started.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// A connection is opened.
    pub(crate) fn note_connection(&self, version: Version, recorder: &ClientRecorder) {
        self.connections.lock().push((version, recorder.clone()));
    }

    /// What the connections in a version have recorded so far.
    pub(crate) fn traces(&self, version: Version) -> Vec<Trace> {
        let connections = self.connections.lock();
        let own = connections.iter().filter(|(asked, recorder)| *asked == version && recorder.end() > 0);
        own.map(|(_, recorder)| {
            // What a connection lacks that is still open says nothing.
            recorder.close(Closed::by_client("the run was ended"));
            recorder.trace()
        })
        .collect()
    }

    /// What the connections in other versions have recorded so far.
    pub(crate) fn others(&self, version: Version) -> Vec<(Version, Trace)> {
        let connections = self.connections.lock();
        let others = connections.iter().filter(|(asked, recorder)| *asked != version && recorder.end() > 0);
        others.map(|(asked, recorder)| (*asked, recorder.trace())).collect()
    }

    /// What the work of the run gives; `None` if the run is ended before, because `shutdown` is cancelled, or because the
    /// time is over and the work does not end by itself.
    pub(crate) async fn limit<T>(&self, shutdown: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = shutdown.cancelled() => None,
            () = tokio::time::sleep_until(self.end + LONGEST_END) => None,
        }
    }

    /// A trace of so many bytes is kept.
    pub(crate) fn keep(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether no more traces can be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.load(Ordering::Relaxed) > MOST_KEPT
    }

    /// The longest time from the start of a process to its first message, so far.
    pub(crate) fn slowest_start(&self) -> Duration {
        self.starts.lock().slowest
    }

    /// A process has taken so long to start.
    pub(crate) fn note_start(&self, took: Duration) {
        let mut starts = self.starts.lock();
        starts.slowest = took.max(starts.slowest);
        starts.has_answered = true;
        self.started.notify_waiters();
    }

    /// Waits until a process has answered.
    pub(crate) async fn first_start(&self) {
        let mut started = pin!(self.started.notified());
        started.as_mut().enable();
        if !self.starts.lock().has_answered {
            started.await;
        }
    }

    /// A process has not answered within the time for its start.
    pub(crate) fn note_hang(&self) {
        self.starts.lock().has_hung = true;
    }

    /// Whether a process has said nothing within the whole time for its start, and none has ever answered: another one
    /// would say nothing either.
    pub(crate) fn hangs(&self) -> bool {
        let starts = self.starts.lock();
        starts.has_hung && !starts.has_answered
    }

    /// Whether the server has been found silent: other connections wait no longer than for a window of silence.
    pub(crate) fn is_silent(&self) -> bool {
        self.silence.lock().is_found
    }

    /// A connection has waited in vain. The server is silent if none has got an answer for this time.
    pub(crate) fn note_silence(&self, limit: Duration) {
        let mut silence = self.silence.lock();
        silence.is_found |= silence.since.elapsed() >= limit;
    }

    /// An answer has come.
    pub(crate) fn note_answer(&self) {
        *self.silence.lock() = Silence { since: Instant::now(), is_found: false };
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
