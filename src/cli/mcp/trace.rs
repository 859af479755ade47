//! `--trace`: every frame as it goes over the wire, one a line, and what servers write to their standard error.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
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

/// Shows the frames of any number of connections.
#[derive(Clone)]
pub(super) struct Tracer(Arc<Inner>);

struct Inner {
    secrets: Option<Secrets>,
    names_servers: bool,
    stop: CancellationToken,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Tracer {
    /// Without `secrets` nothing is hidden. Servers are named if there are several.
    pub(super) fn new(secrets: Option<Secrets>, names_servers: bool) -> Tracer {
        let (stop, tasks) = (CancellationToken::new(), Mutex::default());
        Tracer(Arc::new(Inner { secrets, names_servers, stop, tasks }))
    }

    /// For the records of a hub.
    pub(super) fn records(&self) -> RecordSink {
        let tracer = self.clone();
        Arc::new(move |server, tap| {
            let task = tokio::spawn(follow(tracer.0.clone(), server.clone(), tap.clone()));
            tracer.0.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        })
    }

    pub(super) fn stderr(&self) -> StderrSink {
        let tracer = self.0.clone();
        Arc::new(move |StderrLine { server, line }| {
            let line = tracer.hidden(&line);
            style::print(&format!("{DIM}{:>9}    {}stderr:{DIM:#} {}\n", "", tracer.label(&server), printable(&line)));
        })
    }

    /// Shows what is left.
    pub(super) async fn finish(self) {
        self.0.stop.cancel();
        let tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        futures_util::future::join_all(tasks).await;
    }
}

async fn follow(tracer: Arc<Inner>, server: Arc<str>, tap: Tap) {
    let mut seen = 0;
    tokio::select! {
        _ = tap.wait_for(0, |frame| { seen += 1; tracer.show(&server, frame); false }) => {}
        () = tracer.stop.cancelled() => {}
    }
    tap.since(seen).iter().for_each(|frame| tracer.show(&server, frame));
}

impl Inner {
    fn show(&self, server: &str, frame: &Frame) {
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
        let Some(secrets) = &self.secrets else { return text.to_owned() };
        without_secrets(&secrets.hidden(text))
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
