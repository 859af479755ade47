//! The server, which is started again when it has ended.

use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::Instant;

use crate::{
    options::FuzzOptions,
    oracle::{Outcome, is_accepted},
    private::Private,
    target::Target,
};
use rehearse_client::{CallOptions, ClientRecorder, ConnectError, ConnectOptions, Failure, ServerParams, Session};
use rehearse_document::text::shortened;
use rehearse_protocol::{Operation, Transport};

/// How many events of a connection are kept, because a run has many.
const EVENTS: usize = 500;
/// How long a bug may take after the time of the run is over.
const GRACE: Duration = Duration::from_secs(10);
/// How much of an input is quoted.
const QUOTED: usize = 200;
/// How often a server may fail to start again.
const MOST_STARTS: usize = 3;

pub(crate) struct Server<'s> {
    params: ServerParams,
    /// What is private on its machine, until an answer without an error has a path of it.
    private: Option<Private>,
    pub(crate) options: &'s FuzzOptions,
    /// When the time of the run is over.
    ends: Instant,
    session: Option<Session>,
    failed_starts: usize,
    /// The input after which the connection ended last.
    last: Option<String>,
}

impl<'s> Server<'s> {
    /// # Errors
    /// The server cannot be reached.
    pub(crate) async fn start(params: &ServerParams, options: &'s FuzzOptions) -> Result<Server<'s>, ConnectError> {
        let ends = Instant::now() + options.budget;
        let mut params = params.clone();
        params.shutdown = options.stop.clone();
        let private = Private::plant(&mut params, options.seed);
        let mut server = Server { params, private, options, ends, session: None, failed_starts: 0, last: None };
        server.restart().await?;
        Ok(server)
    }

    pub(crate) fn transport(&self) -> Transport {
        self.params.target.transport()
    }

    pub(crate) fn private(&self) -> Option<&Private> {
        self.private.as_ref()
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

    /// Why no more inputs can be sent, if the server does not start any more.
    pub(crate) fn gone(&self) -> Option<String> {
        let after = self.last.as_ref().map(|last| format!("; its last input was {last}")).unwrap_or_default();
        (self.failed_starts >= MOST_STARTS).then(|| format!("the server does not start any more{after}"))
    }

    /// Sends an input over a connection that is open. `None` if there is none any more, or the run was stopped. After a
    /// request without an answer the next one has a new connection.
    pub(crate) async fn send(&mut self, target: &Target, input: &Json, limit: Duration) -> Option<Outcome> {
        if self.session.as_ref().is_none_or(Session::is_lost) {
            self.restart().await.ok()?;
        }
        let session = self.session.as_ref()?;
        let Operation { method, params } = target.request(input);
        let request = session.request_until_final(&method, Some(params), CallOptions::with_timeout(limit));
        let answered = self.options.stop.run_until_cancelled(request).await?;
        let outcome = answered.and_then(|answered| answered.complete(&method));
        let shows_paths = |private: &mut Private| private.home_in(outcome.as_ref().map_or("", |it| it.get())).is_some();
        if is_accepted(&outcome) && self.private.as_mut().is_some_and(shows_paths) {
            // Its answers are about files of the machine, so its errors may be, too.
            self.private = None;
        }
        if matches!(outcome, Err(Failure::Disconnected { .. } | Failure::Timeout(_))) {
            self.last = Some(format!("{} with {}", target.id, shortened(&input.to_string(), QUOTED)));
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
        self.open(ClientRecorder::with_limit(EVENTS)).await
    }

    /// As [`Server::restart`], and keeps all events.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(crate) async fn open_recorded(&mut self) -> Result<(), ConnectError> {
        self.open(ClientRecorder::new()).await
    }

    async fn open(&mut self, recorder: ClientRecorder) -> Result<(), ConnectError> {
        self.close().await;
        let kept = ConnectOptions { recorder, ..ConnectOptions::default() };
        let opened = Session::connect_with(&self.params, self.options.protocol, kept).await;
        let is_failed = opened.is_err() && !self.options.stop.is_cancelled();
        self.failed_starts = if is_failed { self.failed_starts + 1 } else { 0 };
        self.session = Some(opened?);
        Ok(())
    }
}
