//! `--trace`: every frame as it goes over the wire, one a line, what HTTP says beside them, and what servers write to
//! their standard error.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        config::prepared::Secrets,
        style::{self, DIM, STRONG, printable},
    },
    client::{ServerConfig, StderrLine, StderrSink, hub::RecordSink},
    config::secret::{MASK, hidden_in, is_secret_name},
    report::palette::{ADDED, GOOD},
    transport::{Entry, HttpPart, Place, Tap},
    wire::Direction,
};

/// Headers by which HTTP cuts its messages.
const UNTOLD: [&str; 5] = ["connection", "content-length", "date", "keep-alive", "transfer-encoding"];

/// What looks like a secret by its name, and is none.
const PROGRESS: &str = "\"progressToken\":";

/// Shows the frames of any number of connections.
#[derive(Clone)]
pub(in crate::cli) struct Tracer(Arc<Inner>);

/// Whether the frames of a server are shown at the moment.
pub(in crate::cli) type Shows = Arc<dyn Fn(&str) -> bool + Send + Sync>;

struct Inner {
    secrets: Mutex<Option<Secrets>>,
    names_servers: bool,
    shows: Shows,
    stop: CancellationToken,
    followed: Mutex<All>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// The connections whose frames are shown, in the order of time over all of them.
#[derive(Default)]
struct All {
    connections: Vec<Followed>,
    /// When the first of them was opened: from then on time counts.
    began: Option<Instant>,
}

struct Followed {
    server: Arc<str>,
    tap: Tap,
    /// How far its record has been taken.
    read: Place,
    /// What was recorded when it was looked at already, and so may be later than what another one records.
    later: Vec<Entry>,
}

/// Something to show.
struct Due {
    at: Instant,
    server: Arc<str>,
    entry: Entry,
}

impl All {
    /// What was recorded up to a time and not taken yet, in order.
    fn take(&mut self, until: Instant) -> Vec<Due> {
        let mut due = Vec::new();
        for Followed { server, tap, read, later } in &mut self.connections {
            let mut entries = std::mem::take(later);
            entries.extend(tap.entries(read));
            for entry in entries {
                match tap.opened() + entry.at() {
                    at if at <= until => due.push(Due { at, server: server.clone(), entry }),
                    _ => later.push(entry),
                }
            }
        }
        due.sort_by_key(|due| due.at);
        due
    }
}

impl Tracer {
    /// Without `secrets` nothing is hidden. Servers are named if there are several.
    pub(super) fn new(secrets: Option<Secrets>, names_servers: bool) -> Tracer {
        Tracer::of_some(secrets, names_servers, Arc::new(|_| true))
    }

    /// As [`Tracer::new`], with the frames of those servers alone that are shown when they come.
    pub(in crate::cli) fn of_some(secrets: Option<Secrets>, names_servers: bool, shows: Shows) -> Tracer {
        let (secrets, stop) = (Mutex::new(secrets), CancellationToken::new());
        let (followed, tasks) = (Mutex::default(), Mutex::default());
        Tracer(Arc::new(Inner { secrets, names_servers, shows, stop, followed, tasks }))
    }

    /// Hides other secrets from now on.
    pub(in crate::cli) fn hide(&self, secrets: Option<Secrets>) {
        *locked(&self.0.secrets) = secrets;
    }

    /// For the records of a hub.
    pub(in crate::cli) fn records(&self) -> RecordSink {
        let tracer = self.clone();
        Arc::new(move |server, tap| tracer.follow(server, tap))
    }

    /// Shows what goes over a connection with a server; must be called within a tokio runtime.
    pub(in crate::cli) fn follow(&self, server: &Arc<str>, tap: &Tap) {
        {
            let mut all = locked(&self.0.followed);
            all.began.get_or_insert(tap.opened());
            let (server, tap, read) = (server.clone(), tap.clone(), Place::default());
            all.connections.push(Followed { server, tap, read, later: Vec::new() });
        }
        let (inner, tap) = (self.0.clone(), tap.clone());
        let task = tokio::spawn(async move {
            follow(&tap, inner.stop.clone(), || inner.show_all()).await;
            locked(&inner.followed).connections.retain(|followed| !followed.tap.is(&tap));
        });
        let mut tasks = locked(&self.0.tasks);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Shows how tokens are got for a server; must be called within a tokio runtime.
    pub(in crate::cli) fn follow_authorizer(&self, config: &ServerConfig) {
        if let Some(authorizer) = &config.authorizer {
            self.follow(&config.name.as_str().into(), &authorizer.record());
        }
    }

    pub(in crate::cli) fn stderr(&self) -> StderrSink {
        let tracer = self.0.clone();
        Arc::new(move |StderrLine { server, line }| {
            if !(tracer.shows)(&server) {
                return;
            }
            // What it answers to has been recorded before.
            tracer.show_all();
            let line = tracer.hidden(&line);
            style::print(&format!("{DIM}{:>9}    {}stderr:{DIM:#} {}\n", "", tracer.label(&server), printable(&line)));
        })
    }

    /// Everything that has been recorded is shown, or not, as it is to be now.
    pub(in crate::cli) fn catch_up(&self) {
        self.0.show_all();
    }

    /// Shows what is left.
    pub(in crate::cli) async fn finish(self) {
        self.0.stop.cancel();
        let tasks = std::mem::take(&mut *locked(&self.0.tasks));
        futures_util::future::join_all(tasks).await;
    }
}

/// Has everything shown as it comes, until the connection or the command ends.
async fn follow(tap: &Tap, stop: CancellationToken, show: impl Fn()) {
    let mut seen = Place::default();
    loop {
        let has_more = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            has_more = tap.has_more(seen) => has_more,
        };
        seen = tap.place();
        show();
        if !has_more {
            return;
        }
    }
}

impl Inner {
    /// Shows what has been recorded until now. Whoever comes meanwhile waits, so that the order holds.
    fn show_all(&self) {
        let mut all = locked(&self.followed);
        let due = all.take(Instant::now());
        let began = all.began;
        for Due { at, server, entry } in due {
            self.show(&server, at.saturating_duration_since(began.unwrap_or(at)), &entry);
        }
    }

    fn show(&self, server: &str, at: Duration, entry: &Entry) {
        if !(self.shows)(server) {
            return;
        }
        let (direction, text) = match entry {
            Entry::Frame(frame) => (frame.direction, self.hidden(&String::from_utf8_lossy(&frame.bytes))),
            Entry::Http { part, .. } => self.http(part),
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

    fn http(&self, part: &HttpPart) -> (Direction, String) {
        match part {
            HttpPart::Request { method, target, headers } => {
                let target = self.hidden(target);
                (Direction::ClientToServer, format!("HTTP {method} {target}{}", self.headers(headers)))
            }
            HttpPart::Response { status, headers } => {
                (Direction::ServerToClient, format!("HTTP {status}{}", self.headers(headers)))
            }
            HttpPart::Sent(body) => {
                (Direction::ClientToServer, format!("HTTP body: {}", self.hidden(&String::from_utf8_lossy(body))))
            }
            HttpPart::Body(body) => {
                (Direction::ServerToClient, format!("HTTP body: {}", self.hidden(&String::from_utf8_lossy(body))))
            }
        }
    }

    fn headers(&self, headers: &HeaderMap) -> String {
        let mut told: Vec<_> = headers.iter().filter(|(name, _)| !UNTOLD.contains(&name.as_str())).collect();
        told.sort_by_key(|(name, _)| name.as_str());
        let one = |(name, value): (&HeaderName, &HeaderValue)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            format!(" | {name}: {}", self.header(name.as_str(), &value))
        };
        told.into_iter().map(one).collect()
    }

    fn header(&self, name: &str, value: &str) -> String {
        let is_hidden = locked(&self.secrets).is_some();
        match is_hidden && is_secret_name(name) {
            // The scheme is no secret.
            true => match value.split_once(' ').filter(|_| name.ends_with("authorization")) {
                Some((scheme, _)) => format!("{scheme} {MASK}"),
                None => MASK.to_owned(),
            },
            // A challenge says in the words of credentials what is wanted.
            false if name.ends_with("-authenticate") => self.without_own_secrets(value),
            false => self.hidden(value),
        }
    }

    fn label(&self, server: &str) -> String {
        if self.names_servers { format!("{} ", printable(server)) } else { String::new() }
    }

    fn hidden(&self, text: &str) -> String {
        let text = self.without_own_secrets(text);
        match &*locked(&self.secrets) {
            Some(_) => without_secrets(&text),
            None => text,
        }
    }

    fn without_own_secrets(&self, text: &str) -> String {
        match &*locked(&self.secrets) {
            Some(secrets) => secrets.hidden(text),
            None => text.to_owned(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without what looks like a secret, whoever it belongs to.
fn without_secrets(text: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for span in hidden_in("", text) {
        let is_of_protocol = text[..span.start].trim_end_matches(['"', ' ']).ends_with(PROGRESS);
        if let Some(before) = text.get(at..span.start).filter(|_| !is_of_protocol) {
            out.push_str(before);
            out.push_str(MASK);
            at = span.end;
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(tap: &Tap, text: &'static str) {
        tap.record(Direction::ClientToServer, bytes::Bytes::from_static(text.as_bytes()));
    }

    fn texts(due: &[Due]) -> Vec<String> {
        let text = |due: &Due| match &due.entry {
            Entry::Frame(frame) => format!("{} {}", due.server, String::from_utf8_lossy(&frame.bytes)),
            Entry::Http { .. } => unreachable!("there is no HTTP"),
        };
        due.iter().map(text).collect()
    }

    #[tokio::test]
    async fn whoever_follows_a_connection_is_told_of_every_frame_also_if_the_end_comes_first() {
        let (tap, stop) = (Tap::new(), CancellationToken::new());
        let shown = std::cell::Cell::new(0);
        record(&tap, "1");
        let mut following = Box::pin(follow(&tap, stop.clone(), || shown.set(tap.len())));
        assert!(futures_util::FutureExt::now_or_never(&mut following).is_none());
        record(&tap, "2");
        stop.cancel();
        following.await;
        assert_eq!(shown.get(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn frames_of_all_connections_are_shown_once_and_in_the_order_of_time() {
        let step = || tokio::time::advance(Duration::from_millis(1));
        let (one, mut all) = (Tap::new(), All::default());
        step().await;
        let two = Tap::new();
        for (server, tap) in [("two", &two), ("one", &one)] {
            let (server, tap, read) = (server.into(), tap.clone(), Place::default());
            all.connections.push(Followed { server, tap, read, later: Vec::new() });
        }
        for (tap, text) in [(&one, "a"), (&two, "b"), (&one, "c"), (&two, "d")] {
            record(tap, text);
            step().await;
        }
        let before = Instant::now();
        step().await;
        record(&two, "f");
        assert_eq!(texts(&all.take(before)), ["one a", "two b", "one c", "two d"]);
        // What comes meanwhile is shown the next time, before what is later.
        step().await;
        record(&one, "g");
        assert_eq!(texts(&all.take(Instant::now())), ["two f", "one g"]);
        assert!(all.take(Instant::now()).is_empty());
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden_in_a_frame() {
        let frame = r#"{"params":{"arguments":{"token":"geheim1234","city":"Oslo"}}}"#;
        assert_eq!(without_secrets(frame), r#"{"params":{"arguments":{"token":"***","city":"Oslo"}}}"#);
        for plain in [
            "{}",
            r#"{"_meta":{"progressToken":1}}"#,
            r#"{"_meta":{"progressToken":"abcdefgh"}}"#,
            r#"{"properties":{"token":{"type":"string"},"password":{"$ref":"x"}}}"#,
        ] {
            assert_eq!(without_secrets(plain), plain);
        }
    }
}
