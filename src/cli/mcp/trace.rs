//! `--trace`: every frame as it goes over the wire, one a line, and what servers write to their standard error.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

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
        secret::{MASK, secrets_of},
    },
    report::palette::{ADDED, GOOD},
    transport::Tap,
    wire::{Direction, Frame},
};

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
    /// How many frames have been shown.
    shown: watch::Receiver<usize>,
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
        *self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner) = secrets;
    }

    /// For the records of a hub.
    pub(in crate::cli) fn records(&self) -> RecordSink {
        let tracer = self.clone();
        Arc::new(move |server, tap| {
            let (inner, server) = (tracer.0.clone(), server.clone());
            let (count, shown) = watch::channel(0);
            let show = move |frame: &Frame| {
                inner.show(&server, frame);
                count.send_modify(|count| *count += 1);
            };
            let task = tokio::spawn(follow(tap.clone(), tracer.0.stop.clone(), show));
            let mut followers = tracer.0.followers.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Waits until every frame that has been recorded was shown, or not, as it was to be when it came.
    pub(in crate::cli) async fn catch_up(&self) {
        let behind: Vec<_> = {
            let followers = self.0.followers.lock().unwrap_or_else(PoisonError::into_inner);
            followers.iter().map(|follower| (follower.shown.clone(), follower.tap.len())).collect()
        };
        for (mut shown, recorded) in behind {
            let _ = timeout(LAG, shown.wait_for(|shown| *shown >= recorded)).await;
        }
    }

    /// Shows what is left.
    pub(in crate::cli) async fn finish(self) {
        self.0.stop.cancel();
        let followers = std::mem::take(&mut *self.0.followers.lock().unwrap_or_else(PoisonError::into_inner));
        futures_util::future::join_all(followers.into_iter().map(|follower| follower.task)).await;
    }
}

/// Shows every frame once, as it comes, until the connection or the command ends.
async fn follow(tap: Tap, stop: CancellationToken, mut show: impl FnMut(&Frame)) {
    let mut seen = 0;
    let live = |frame: &Frame| {
        seen += 1;
        show(frame);
        false
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        _ = tap.wait_for(0, live) => {}
    }
    tap.since(seen).iter().for_each(show);
}

impl Inner {
    fn show(&self, server: &str, frame: &Frame) {
        if !(self.shows)(server) {
            return;
        }
        let (arrow, style) = match frame.direction {
            Direction::ClientToServer => ("→", GOOD),
            Direction::ServerToClient => ("←", ADDED),
        };
        let text = self.hidden(&String::from_utf8_lossy(&frame.bytes));
        let at = frame.at.as_secs_f64() * 1000.0;
        let label = self.label(server);
        style::print(&format!(
            "{DIM}{at:>9.1} ms{DIM:#} {style}{arrow}{style:#} {STRONG}{label}{STRONG:#}{}\n",
            printable(&text)
        ));
    }

    fn label(&self, server: &str) -> String {
        if self.names_servers { format!("{} ", printable(server)) } else { String::new() }
    }

    fn hidden(&self, text: &str) -> String {
        match &*self.secrets.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(secrets) => without_secrets(&secrets.hidden(text)),
            None => text.to_owned(),
        }
    }
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
        let following = follow(tap.clone(), stop.clone(), |frame| shown.push(frame.bytes.clone()));
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
