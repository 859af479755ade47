//! The server, which is started again when it has ended.

use std::time::Duration;

use serde_json::{Value as Json, value::RawValue};
use tokio::time::Instant;

use crate::{options::FuzzOptions, target::Target};
use rehearse_client::{CallOptions, ClientRecorder, ConnectError, ConnectOptions, Failure, ServerParams, Session};

/// How many events of a connection are kept, because a run has many.
const EVENTS: usize = 500;
/// How long a bug may take after the time of the run is over.
const GRACE: Duration = Duration::from_secs(10);
/// How often a server may fail to start again.
const MOST_STARTS: usize = 3;

/// What came back: the result as it came, or why there is none.
pub(crate) type Outcome = Result<Box<RawValue>, Failure>;

pub(crate) struct Server<'s> {
    params: &'s ServerParams,
    pub(crate) options: &'s FuzzOptions,
    /// When the time of the run is over.
    ends: Instant,
    session: Option<Session>,
    failed_starts: usize,
}

impl<'s> Server<'s> {
    /// # Errors
    /// The server cannot be reached.
    pub(crate) async fn start(params: &'s ServerParams, options: &'s FuzzOptions) -> Result<Server<'s>, ConnectError> {
        let ends = Instant::now() + options.budget;
        let mut server = Server { params, options, ends, session: None, failed_starts: 0 };
        server.restart().await?;
        Ok(server)
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Whether no more inputs are sent.
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.ends || self.options.stop.is_cancelled()
    }

    /// The time that is left.
    pub(crate) fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    /// The time that is left for a bug that was seen.
    pub(crate) fn grace(&self) -> Duration {
        if self.options.stop.is_cancelled() {
            Duration::ZERO
        } else {
            (self.ends + GRACE).saturating_duration_since(Instant::now())
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.failed_starts >= MOST_STARTS
    }

    /// Sends an input over a connection that is open. `None` if there is none any more. After a request without an answer
    /// the next one has a new connection.
    pub(crate) async fn send(&mut self, target: &Target, input: &Json, limit: Duration) -> Option<Outcome> {
        if self.session.as_ref().is_none_or(Session::is_lost) {
            self.restart().await.ok()?;
        }
        let session = self.session.as_ref()?;
        let (method, params) = target.request(input);
        let answered = session.request_until_final(method, Some(params), CallOptions::with_timeout(limit)).await;
        let outcome = answered.and_then(|answered| answered.complete(method));
        if matches!(outcome, Err(Failure::Disconnected { .. } | Failure::Timeout(_))) {
            self.close().await;
        }
        Some(outcome)
    }

    pub(crate) async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            // A server that is busy gets no time to end by itself.
            session.set_overdue(true);
            session.close().await;
        }
    }

    /// Opens a new connection.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(crate) async fn restart(&mut self) -> Result<(), ConnectError> {
        self.close().await;
        let kept = ConnectOptions { recorder: ClientRecorder::with_limit(EVENTS), ..ConnectOptions::default() };
        let opened = Session::connect_with(self.params, self.options.protocol, kept).await;
        self.failed_starts = if opened.is_ok() { 0 } else { self.failed_starts + 1 };
        self.session = Some(opened?);
        Ok(())
    }
}
