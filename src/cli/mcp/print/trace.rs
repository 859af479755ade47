//! `--trace`: prints every frame, the HTTP messages around them, and the stderr of servers.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::server_log::{LogEntry, log_entry};
use crate::cli::{
    log,
    secrets::Secrets,
    style::{self, DIM, DOUBTFUL, STRONG, printable},
};
use rehearse_client::{ClientRecorder, ServerParams, StderrLine, StderrSink};
use rehearse_hub::RecordSink;
use rehearse_protocol::{Direction, Event, EventKind, ProcessEvent};
use rehearse_report::{
    palette::{ADDED, GOOD},
    text::printable_lines,
};

/// Headers about the framing of HTTP messages.
const HIDDEN_HEADERS: [&str; 5] = ["connection", "content-length", "date", "keep-alive", "transfer-encoding"];

/// Prints the frames of any number of connections.
#[derive(Clone)]
pub(crate) struct Tracer(Arc<Inner>);

/// Whether to print the frames of a server.
pub(crate) type ServerFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

struct Inner {
    secrets: Mutex<Option<Secrets>>,
    names_servers: bool,
    shows: ServerFilter,
    /// Prints the log messages and progress of the other servers.
    shows_log: bool,
    stop: CancellationToken,
    connections: Mutex<Connections>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// The traced connections, whose frames are printed in the order of time.
#[derive(Default)]
struct Connections {
    connections: Vec<TracedConnection>,
    /// When the first connection was opened, which is time zero.
    began: Option<Instant>,
}

struct TracedConnection {
    server: Arc<str>,
    recorder: ClientRecorder,
    /// The position of the next entry to print.
    read: usize,
    /// Entries that were recorded after the time up to which entries are printed.
    later: Vec<Event>,
}

impl TracedConnection {
    fn new(server: Arc<str>, recorder: ClientRecorder) -> TracedConnection {
        TracedConnection { server, recorder, read: 0, later: Vec::new() }
    }
}

/// An entry with its time and server.
struct TimedEntry {
    at: Instant,
    server: Arc<str>,
    entry: Event,
}

impl Connections {
    /// Takes all entries up to a time, in order.
    fn take(&mut self, until: Instant) -> Vec<TimedEntry> {
        let mut due = Vec::new();
        for TracedConnection { server, recorder, read, later } in &mut self.connections {
            let mut entries = std::mem::take(later);
            entries.extend(recorder.read(read));
            for entry in entries {
                // Only more than one process is worth a line.
                if matches!(entry.kind, EventKind::Process(ProcessEvent::Started { .. })) && !recorder.is_another() {
                    continue;
                }
                match recorder.opened() + entry.at {
                    at if at <= until => due.push(TimedEntry { at, server: server.clone(), entry }),
                    _ => later.push(entry),
                }
            }
        }
        due.sort_by_key(|due| due.at);
        due
    }
}

impl Tracer {
    /// Without `secrets` nothing is hidden. With `names_servers` each line has the name of its server.
    pub(crate) fn new(secrets: Option<Secrets>, names_servers: bool) -> Tracer {
        Tracer::filtered(secrets, names_servers, Arc::new(|_| true), false)
    }

    /// As [`Tracer::new`], only for servers that pass the filter. With `shows_log`, the log messages and progress of the
    /// others are printed.
    pub(crate) fn filtered(
        secrets: Option<Secrets>,
        names_servers: bool,
        shows: ServerFilter,
        shows_log: bool,
    ) -> Tracer {
        let (secrets, stop) = (Mutex::new(secrets), CancellationToken::new());
        let (connections, tasks) = (Mutex::default(), Mutex::default());
        Tracer(Arc::new(Inner { secrets, names_servers, shows, shows_log, stop, connections, tasks }))
    }

    /// Replaces the secrets to hide.
    pub(crate) fn hide(&self, secrets: Option<Secrets>) {
        *self.0.secrets.lock() = secrets;
    }

    /// For [`HubOptions::record_sink`](rehearse_hub::HubOptions::record_sink).
    pub(crate) fn records(&self) -> RecordSink {
        let tracer = self.clone();
        Arc::new(move |server, recorder| tracer.follow(server, recorder))
    }

    /// Prints the frames of a connection. Must be called within a tokio runtime.
    pub(crate) fn follow(&self, server: &Arc<str>, recorder: &ClientRecorder) {
        {
            let mut all = self.0.connections.lock();
            all.began.get_or_insert(recorder.opened());
            all.connections.push(TracedConnection::new(server.clone(), recorder.clone()));
        }
        let (inner, recorder) = (self.0.clone(), recorder.clone());
        let task = tokio::spawn(async move {
            follow(&recorder, inner.stop.clone(), || inner.show_all()).await;
            inner.connections.lock().connections.retain(|connections| !connections.recorder.is_same_as(&recorder));
        });
        let mut tasks = self.0.tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Prints the HTTP requests of an authorizer. Must be called within a tokio runtime.
    pub(crate) fn follow_authorizer(&self, config: &ServerParams) {
        if let Some(authorizer) = &config.authorizer {
            self.follow(&config.name.as_str().into(), &authorizer.recorder());
        }
    }

    /// Prints the stderr of all servers if `is_complete`, else only of those whose frames are printed.
    pub(crate) fn stderr(&self, is_complete: bool) -> StderrSink {
        let tracer = self.0.clone();
        Arc::new(move |StderrLine { server, line }| {
            if !(tracer.shows)(&server) {
                if is_complete {
                    print_stderr(&server, &tracer.masked(&line, Secrets::hidden));
                }
                return;
            }
            // Earlier frames come first.
            tracer.show_all();
            let line = tracer.masked(&line, Secrets::hidden);
            style::print(&format!("{DIM}{:>9}    {}stderr:{DIM:#} {}\n", "", tracer.label(&server), printable(&line)));
        })
    }

    /// Prints everything recorded so far with the current filter.
    pub(crate) fn catch_up(&self) {
        self.0.show_all();
    }

    /// Prints the remaining frames.
    pub(crate) async fn finish(self) {
        self.0.stop.cancel();
        let tasks = std::mem::take(&mut *self.0.tasks.lock());
        futures_util::future::join_all(tasks).await;
    }
}

/// Prints a line of a server's stderr with the name of the server.
pub(crate) fn print_stderr(server: &str, line: &str) {
    match log::is_json() {
        true => style::print_record("INFO", line, &[("server", server.into()), ("stream", "stderr".into())]),
        false => style::print(&format!("{DIM}[{}]{DIM:#} {}\n", printable(server), printable(line))),
    }
}

/// Prints entries as they arrive, until the connection or the command ends.
async fn follow(recorder: &ClientRecorder, stop: CancellationToken, show: impl Fn()) {
    let mut seen = 0;
    loop {
        let has_more = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            has_more = recorder.has_more(seen) => has_more,
        };
        seen = recorder.end();
        show();
        if !has_more {
            return;
        }
    }
}

impl Inner {
    /// Prints everything recorded so far. The lock keeps the order.
    fn show_all(&self) {
        let mut all = self.connections.lock();
        let due = all.take(Instant::now());
        let began = all.began;
        for TimedEntry { at, server, entry } in due {
            self.show(&server, at.saturating_duration_since(began.unwrap_or(at)), &entry);
        }
    }

    fn show(&self, server: &str, at: Duration, entry: &Event) {
        if !(self.shows)(server) {
            let log = entry.frame().filter(|_| self.shows_log).and_then(log_entry);
            if let Some(LogEntry { is_bad, text }) = log {
                let level =
                    if is_bad { format!("{DOUBTFUL}warning:{DOUBTFUL:#}") } else { format!("{DIM}info:{DIM:#}") };
                let text = self.masked(&format!("{server}: {text}"), Secrets::hidden);
                let lines: Vec<_> = printable_lines(&text).collect();
                style::print(&format!("{level} {}\n", lines.join("\n  ")));
            }
            return;
        }
        let (direction, text) = match &entry.kind {
            EventKind::Frame(frame) => (frame.direction, self.hidden(&String::from_utf8_lossy(&frame.bytes))),
            EventKind::HttpRequest { method, target, headers } => {
                let target = self.hidden(target);
                (Direction::ClientToServer, format!("HTTP {method} {target}{}", self.headers(headers)))
            }
            EventKind::HttpResponse { status, headers } => {
                (Direction::ServerToClient, format!("HTTP {status}{}", self.headers(headers)))
            }
            EventKind::HttpBody { direction, bytes } => {
                (*direction, format!("HTTP body: {}", self.hidden(&String::from_utf8_lossy(bytes))))
            }
            EventKind::Process(ProcessEvent::Started { .. }) => {
                let text = "the server is started once more, in a process that begins with `initialize`";
                let (at, label) = (at.as_secs_f64() * 1000.0, self.label(server));
                return style::print(&format!("{DIM}{at:>9.1} ms{DIM:#}   {STRONG}{label}{STRONG:#}{text}\n"));
            }
            // Standard error is printed as it comes; the others are in the messages of the command.
            EventKind::Opened(_)
            | EventKind::Process(_)
            | EventKind::Stderr(_)
            | EventKind::HttpEnd { .. }
            | EventKind::Case(_)
            | EventKind::Closed(_) => return,
        };
        let (arrow, style) = match direction {
            Direction::ClientToServer => ("→", GOOD),
            Direction::ServerToClient => ("←", ADDED),
        };
        let at = at.as_secs_f64() * 1000.0;
        let label = self.label(server);
        style::print(&format!(
            "{DIM}{at:>9.1} ms{DIM:#} {style}{arrow}{style:#} {STRONG}{label}{STRONG:#}{}\n",
            printable(&text)
        ));
    }

    fn headers(&self, headers: &HeaderMap) -> String {
        let mut shown: Vec<_> = headers.iter().filter(|(name, _)| !HIDDEN_HEADERS.contains(&name.as_str())).collect();
        shown.sort_by_key(|(name, _)| name.as_str());
        let one = |(name, value): (&HeaderName, &HeaderValue)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            format!(" | {name}: {}", self.header(name.as_str(), &value))
        };
        shown.into_iter().map(one).collect()
    }

    fn header(&self, name: &str, value: &str) -> String {
        let secrets = self.secrets.lock();
        secrets.as_ref().map_or_else(|| value.to_owned(), |secrets| secrets.hidden_header(name, value))
    }

    fn label(&self, server: &str) -> String {
        if self.names_servers { format!("{} ", printable(server)) } else { String::new() }
    }

    fn hidden(&self, text: &str) -> String {
        self.masked(text, Secrets::hidden_in_frame)
    }

    fn masked(&self, text: &str, mask: fn(&Secrets, &str) -> String) -> String {
        self.secrets.lock().as_ref().map_or_else(|| text.to_owned(), |secrets| mask(secrets, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(recorder: &ClientRecorder, text: &'static str) {
        recorder.record(Direction::ClientToServer, bytes::Bytes::from_static(text.as_bytes()));
    }

    fn texts(due: &[TimedEntry]) -> Vec<String> {
        let text = |due: &TimedEntry| {
            let frame = due.entry.frame()?;
            Some(format!("{} {}", due.server, String::from_utf8_lossy(&frame.bytes)))
        };
        due.iter().filter_map(text).collect()
    }

    #[tokio::test]
    async fn a_trace_has_every_frame_also_if_the_end_comes_first() {
        let (recorder, stop) = (ClientRecorder::new(), CancellationToken::new());
        let shown = std::cell::Cell::new(0);
        record(&recorder, "1");
        let mut following = Box::pin(follow(&recorder, stop.clone(), || shown.set(recorder.end())));
        assert!(futures_util::FutureExt::now_or_never(&mut following).is_none());
        record(&recorder, "2");
        stop.cancel();
        following.await;
        assert_eq!(shown.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn frames_of_all_connections_are_shown_once_and_in_the_order_of_time() {
        let step = || tokio::time::advance(Duration::from_millis(1));
        let (one, mut all) = (ClientRecorder::new(), Connections::default());
        step().await;
        let two = ClientRecorder::new();
        for (server, recorder) in [("two", &two), ("one", &one)] {
            all.connections.push(TracedConnection::new(server.into(), recorder.clone()));
        }
        for (recorder, text) in [(&one, "a"), (&two, "b"), (&one, "c"), (&two, "d")] {
            record(recorder, text);
            step().await;
        }
        let before = Instant::now();
        step().await;
        record(&two, "f");
        assert_eq!(texts(&all.take(before)), ["one a", "two b", "one c", "two d"]);
        // Events that arrive meanwhile are shown next time, in order.
        step().await;
        record(&one, "g");
        assert_eq!(texts(&all.take(Instant::now())), ["two f", "one g"]);
        assert!(all.take(Instant::now()).is_empty());
    }
}
