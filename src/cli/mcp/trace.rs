//! `--trace`: every frame as it goes over the wire, one a line, what HTTP says beside them, and what servers write to
//! their standard error.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{
        config::prepared::Secrets,
        style::{self, DIM, STRONG, printable},
    },
    client::{StderrLine, StderrSink, hub::RecordSink},
    config::{
        Source,
        secret::{MASK, is_secret_name, secrets_of},
    },
    report::palette::{ADDED, GOOD},
    transport::{Entry, HttpPart, Place, Tap},
    wire::Direction,
};

/// Headers by which HTTP cuts its messages.
const UNTOLD: [&str; 5] = ["connection", "content-length", "date", "keep-alive", "transfer-encoding"];

/// What looks like a secret by its name, and is none.
const PROGRESS: &str = "\"progressToken\":";

/// How long frames may take from the record to the screen, for whoever waits for them.
const LAG: Duration = Duration::from_secs(1);

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
    followers: Mutex<Vec<Follower>>,
}

/// Whoever shows the frames of one connection.
struct Follower {
    task: JoinHandle<()>,
    tap: Tap,
    /// How far its record has been shown.
    shown: watch::Receiver<Place>,
}

impl Tracer {
    /// Without `secrets` nothing is hidden. Servers are named if there are several.
    pub(super) fn new(secrets: Option<Secrets>, names_servers: bool) -> Tracer {
        Tracer::of_some(secrets, names_servers, Arc::new(|_| true))
    }

    /// As [`Tracer::new`], with the frames of those servers alone that are shown when they come.
    pub(in crate::cli) fn of_some(secrets: Option<Secrets>, names_servers: bool, shows: Shows) -> Tracer {
        let (secrets, stop, followers) = (Mutex::new(secrets), CancellationToken::new(), Mutex::default());
        Tracer(Arc::new(Inner { secrets, names_servers, shows, stop, followers }))
    }

    /// Hides other secrets from now on.
    pub(in crate::cli) fn hide(&self, secrets: Option<Secrets>) {
        *locked(&self.0.secrets) = secrets;
    }

    /// For the records of a hub.
    pub(in crate::cli) fn records(&self) -> RecordSink {
        let tracer = self.clone();
        Arc::new(move |server, tap| {
            let (inner, server) = (tracer.0.clone(), server.clone());
            let (place, shown) = watch::channel(Place::default());
            let show = move |entries: &[Entry], read| {
                entries.iter().for_each(|entry| inner.show(&server, entry));
                place.send_replace(read);
            };
            let task = tokio::spawn(follow(tap.clone(), tracer.0.stop.clone(), show));
            let mut followers = locked(&tracer.0.followers);
            followers.retain(|follower| !follower.task.is_finished());
            followers.push(Follower { task, tap: tap.clone(), shown });
        })
    }

    pub(in crate::cli) fn stderr(&self) -> StderrSink {
        let tracer = self.0.clone();
        Arc::new(move |StderrLine { server, line }| {
            if !(tracer.shows)(&server) {
                return;
            }
            let line = tracer.hidden(&line);
            style::print(&format!("{DIM}{:>9}    {}stderr:{DIM:#} {}\n", "", tracer.label(&server), printable(&line)));
        })
    }

    /// Waits until everything that has been recorded was shown, or not, as it was to be when it came.
    pub(in crate::cli) async fn catch_up(&self) {
        let behind: Vec<_> = {
            let followers = locked(&self.0.followers);
            followers.iter().map(|follower| (follower.shown.clone(), follower.tap.place())).collect()
        };
        for (mut shown, recorded) in behind {
            let _ = timeout(LAG, shown.wait_for(|shown| shown.reaches(recorded))).await;
        }
    }

    /// Shows what is left.
    pub(in crate::cli) async fn finish(self) {
        self.0.stop.cancel();
        let followers = std::mem::take(&mut *locked(&self.0.followers));
        futures_util::future::join_all(followers.into_iter().map(|follower| follower.task)).await;
    }
}

/// Shows everything once, as it comes, until the connection or the command ends.
async fn follow(tap: Tap, stop: CancellationToken, mut show: impl FnMut(&[Entry], Place)) {
    let mut read = Place::default();
    loop {
        let has_more = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            has_more = tap.has_more(read) => has_more,
        };
        let entries = tap.entries(&mut read);
        show(&entries, read);
        if !has_more {
            return;
        }
    }
}

impl Inner {
    fn show(&self, server: &str, entry: &Entry) {
        if !(self.shows)(server) {
            return;
        }
        let (at, direction, text) = match entry {
            Entry::Frame(frame) => (frame.at, frame.direction, self.hidden(&String::from_utf8_lossy(&frame.bytes))),
            Entry::Http { at, part } => {
                let (direction, text) = self.http(part);
                (*at, direction, text)
            }
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
    let source = Source::new("", text);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for span in secrets_of(&source, None) {
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

    #[tokio::test]
    async fn every_frame_is_shown_once_also_if_the_end_comes_first() {
        let (tap, stop, mut shown) = (Tap::new(), CancellationToken::new(), Vec::new());
        let record = |text: &'static [u8]| tap.record(Direction::ClientToServer, bytes::Bytes::from_static(text));
        record(b"1");
        let following = follow(tap.clone(), stop.clone(), |entries, _| {
            shown.extend(entries.iter().map(|entry| match entry {
                Entry::Frame(frame) => frame.bytes.clone(),
                Entry::Http { .. } => unreachable!("there is no HTTP"),
            }));
        });
        let mut following = Box::pin(following);
        assert!(futures_util::FutureExt::now_or_never(&mut following).is_none());
        record(b"2");
        stop.cancel();
        following.await;
        assert_eq!(shown, ["1", "2"]);
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
