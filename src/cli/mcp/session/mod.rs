//! A [`HubSession`]: the connections of a command, which are closed when it ends.

mod messages;
mod traffic;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::LocalBoxFuture, stream};
use tokio::sync::broadcast::{Receiver, error::TryRecvError};
use tokio_util::sync::CancellationToken;

pub(crate) use self::messages::without_stderr;
use self::{
    messages::{retries, stderr},
    traffic::Traffic,
};
use super::{
    args::CommonArgs,
    error::{CommandError, exit_of},
    print::{trace::Tracer, trace_before_results},
    target::{Server, authorization::Authorizers, connection::hub_options, print_no_servers},
};
use crate::cli::{
    Exit, Failure,
    job::Job,
    log,
    process_guard::block_on_guarded,
    secrets::Secrets,
    style::{self, BAD, DIM, DOUBTFUL, STRONG, printable},
    terminal_user::TerminalUser,
};
use rehearse_client::{self as client, CallOptions, ConnectError, Session};
use rehearse_client_configs::policy::Unreachable;
use rehearse_hub::{Discovery, Event, Hub, HubError, HubOptions, Notice, RecordSink};
use rehearse_report::text::printable_lines;

/// What the first signal prints.
pub(crate) const INTERRUPTED: &str = "interrupted: closing connections\n";
/// How many notices of one kind are printed.
const MAX_NOTICES: usize = 20;
/// How long servers may take to exit before a message is printed.
const EXIT_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// The servers of a command, connected on first use.
pub(crate) struct HubSession {
    pub(crate) hub: Hub,
    /// The servers of the command, in order.
    pub(crate) names: Vec<Arc<str>>,
    pub(super) unreachable: Unreachable,
    secrets: Secrets,
    authorizers: Authorizers,
    pub(super) is_interrupted: CancellationToken,
    /// The user who answers server requests.
    pub(crate) person: Option<TerminalUser>,
    /// Whether the stderr of servers is printed as it comes, so that errors need not repeat it.
    prints_stderr: bool,
}

/// How long a cancelled request may take, to notify the server.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(3);

/// Runs `work` with a hub of these servers. When this returns, even after an interruption, all connections are closed and
/// all processes have ended.
///
/// # Errors
/// The error of `work`; or processes cannot be started.
pub(super) fn run_session(
    args: &CommonArgs,
    servers: &[Server],
    work: impl AsyncFnOnce(&HubSession) -> Result<Exit, CommandError>,
) -> Result<Exit, Failure> {
    run_with_user(None, args, servers, |_| {}, work)
}

/// As [`run_session`], with a user who answers server requests; `set` changes the options of the hub.
///
/// # Errors
/// As [`run_session`].
pub(super) fn run_with_user(
    person: Option<TerminalUser>,
    args: &CommonArgs,
    servers: &[Server],
    set: impl FnOnce(&mut HubOptions),
    work: impl AsyncFnOnce(&HubSession) -> Result<Exit, CommandError>,
) -> Result<Exit, Failure> {
    if servers.is_empty() {
        print_no_servers();
        return Ok(Exit::NothingSelected);
    }
    let connection = &args.connection;
    let is_interrupted = CancellationToken::new();
    let members = connection.members(servers, &connection.answer_script()?, person.as_ref(), &is_interrupted)?;
    let authorizers = Authorizers::new(&members, servers);
    let none = Secrets::default();
    let secrets = servers.iter().fold(none, |all, server| all.merge(&server.resolved.secrets));
    let tokens = members.iter().filter_map(|member| member.config.authorizer.clone());
    let secrets = secrets.merge_tokens(tokens.filter(|_| !connection.show_secrets));
    let tracer =
        connection.trace.then(|| Tracer::new((!connection.show_secrets).then(|| secrets.clone()), servers.len() > 1));
    let mut options = hub_options(servers);
    args.apply(&mut options);
    set(&mut options);
    let traffic = Traffic::new(&args.traffic, &members, (!connection.show_secrets).then(|| secrets.clone()))?;
    options.record_sink = both(tracer.as_ref().map(Tracer::records), traffic.as_ref().map(Traffic::records));
    options.stderr = match &tracer {
        Some(tracer) => Some(tracer.stderr(true)),
        None => (!connection.quiet).then(|| stderr(secrets.clone())),
    };
    options.all_stderr = tracer.is_some();
    trace_before_results(tracer.clone());
    options.retry_sink = Some(retries(secrets.clone()));
    block_on_guarded(async {
        let mut job = Job::start(is_interrupted.clone(), INTERRUPTED)?;
        let unreachable = options.unreachable;
        if let Some(tracer) = &tracer {
            for member in &members {
                tracer.follow_authorizer(&member.config);
            }
        }
        let hub_session = HubSession {
            hub: Hub::new(members, options),
            names: servers.iter().map(|server| server.name().into()).collect(),
            unreachable,
            secrets,
            authorizers,
            is_interrupted,
            person,
            prints_stderr: !connection.quiet,
        };
        let done = hub_session.until_done_or_interrupted(&mut job, Box::pin(work(&hub_session))).await;
        if let Some(tracer) = tracer {
            tracer.finish().await;
        }
        // This withdraws open questions.
        if let Some(person) = &hub_session.person {
            person.keyboard().release().await;
        }
        let done = hub_session.exit(done);
        match &traffic {
            Some(traffic) => traffic.finish(done),
            None => done,
        }
    })
}

/// A sink for both.
fn both(one: Option<RecordSink>, two: Option<RecordSink>) -> Option<RecordSink> {
    match (one, two) {
        (Some(one), Some(two)) => Some(Arc::new(move |server, recorder| {
            one(server, recorder);
            two(server, recorder);
        })),
        (one, two) => one.or(two),
    }
}

impl HubSession {
    /// A session for an existing hub.
    pub(crate) fn for_hub(
        hub: Hub,
        names: Vec<Arc<str>>,
        secrets: Secrets,
        person: Option<TerminalUser>,
        prints_stderr: bool,
    ) -> HubSession {
        let is_interrupted = CancellationToken::new();
        let (unreachable, authorizers) = (Unreachable::Skipped, Authorizers::default());
        HubSession { hub, names, unreachable, secrets, authorizers, is_interrupted, person, prints_stderr }
    }

    /// The same session, whose requests are cancelled by this token.
    pub(crate) fn interrupted_by(self, cancel: &CancellationToken) -> HubSession {
        HubSession { is_interrupted: cancel.clone(), ..self }
    }

    /// Runs a request, which an interruption or `cancel` cancels.
    async fn cancellable<T>(&self, cancel: CancellationToken, work: impl AsyncFnOnce(CallOptions) -> T) -> T {
        let request = cancel.child_token();
        let mut work = Box::pin(work(CallOptions { cancel: Some(request.clone()), ..CallOptions::default() }));
        tokio::select! {
            biased;
            done = &mut work => done,
            () = self.is_interrupted.cancelled() => {
                request.cancel();
                work.await
            }
        }
    }

    /// Runs the work and closes the hub. A signal cancels the work or speeds up closing; a second one kills the server
    /// processes.
    async fn until_done_or_interrupted(
        &self,
        job: &mut Job,
        mut work: LocalBoxFuture<'_, Result<Exit, CommandError>>,
    ) -> Result<Exit, CommandError> {
        let mut events = self.hub.events();
        let whole = async {
            let done = tokio::select! {
                biased;
                () = self.is_interrupted.cancelled() => None,
                done = &mut work => Some(done),
            };
            let Some(done) = done else {
                // Closing the hub cancels the calls, which ends the work.
                let (_, ()) = tokio::join!(work, self.hub.close());
                return Ok(Exit::CannotRun);
            };
            self.print_renewed(&mut events);
            self.print_unsolicited();
            let mut closing = std::pin::pin!(self.hub.close());
            if tokio::time::timeout(EXIT_NOTICE_DELAY, &mut closing).await.is_err() {
                self.note("waiting for servers to exit (Ctrl-C to force)");
                closing.await;
            }
            self.print_unsolicited();
            done
        };
        match job.run(whole).await {
            Some(done) if !self.is_interrupted() => done,
            _ => Ok(Exit::CannotRun),
        }
    }

    /// Warns about servers that lost their session.
    fn print_renewed(&self, events: &mut Receiver<Event>) {
        loop {
            match events.try_recv() {
                Ok(Event::SessionRenewed(server)) => self.warn(&renewal_message(&server)),
                Ok(Event::Rerouted(rerouted)) => self.warn(&rerouted.to_string()),
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Warns about unsolicited output, one line for each server.
    fn print_unsolicited(&self) {
        let strays = self.hub.take_unsolicited();
        for server in &self.names {
            let mut of_server = strays.iter().filter(|(name, _)| name == server).map(|(_, stray)| stray);
            if let Some(first) = of_server.next() {
                let more = match of_server.count() {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                let text = self.hidden(&format!("MCP server '{server}' sent unexpected output: {first}{more}"));
                style::print(&format!("{DOUBTFUL}warning:{DOUBTFUL:#} {}\n", printable(&text)));
            }
        }
    }

    fn exit(&self, done: Result<Exit, CommandError>) -> Result<Exit, Failure> {
        match done {
            Ok(exit) => {
                self.print_hint();
                Ok(exit)
            }
            Err(CommandError::Call(failure)) => {
                self.print_failure(&failure);
                self.print_hint();
                Ok(exit_of(&failure))
            }
            Err(CommandError::Listing(what)) => {
                self.say(&format!("{BAD}error:{BAD:#}"), &what);
                Ok(Exit::Violation)
            }
            Err(CommandError::Failure(failure @ Failure::CannotRun { hint: None, .. })) => {
                let failure = self.without_secrets(failure);
                Err(match self.authorizers.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                })
            }
            Err(CommandError::Failure(failure)) => Err(self.without_secrets(failure)),
        }
    }

    /// Prints how to authorize servers that require it.
    fn print_hint(&self) {
        if let Some(hint) = self.authorizers.hint().filter(|_| !self.is_interrupted.is_cancelled()) {
            style::print(&format!("{STRONG}hint:{STRONG:#} {}\n", printable(&hint)));
        }
    }

    fn without_secrets(&self, failure: Failure) -> Failure {
        match failure {
            Failure::CannotRun { what, hint } => Failure::CannotRun { what: self.message(&what), hint },
            Failure::Usage(what) => Failure::Usage(self.hidden(&what)),
            other => other,
        }
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.is_interrupted.is_cancelled()
    }

    /// Waits for an interruption.
    pub(super) async fn interrupted(&self) {
        self.is_interrupted.cancelled().await;
    }

    /// Waits for an interruption and the grace period of cancelled requests.
    pub(super) async fn given_up(&self) {
        self.is_interrupted.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    }

    /// Hides the secrets of all servers in a text.
    pub(crate) fn hidden(&self, text: &str) -> String {
        self.secrets.hidden(text)
    }

    /// A text for people without secrets, and without the stderr that was printed before.
    pub(crate) fn message(&self, text: &str) -> String {
        let text = if self.prints_stderr { without_stderr(text) } else { text };
        self.hidden(text)
    }

    /// Runs `work` with the session of a server.
    ///
    /// # Errors
    /// The server cannot be reached, or the error of `work`.
    pub(crate) async fn with_session<T>(
        &self,
        server: &str,
        work: impl AsyncFnOnce(&Session, CallOptions) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let work = async |session: &Session, cancel| {
            self.cancellable(cancel, async |options| work(session, options).await).await
        };
        Box::pin(self.hub.with_session(server, work)).await.map_err(CommandError::from)?
    }

    /// Sends one request to a server, and retries it once if the server has lost the session.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) async fn request<T>(
        &self,
        server: &str,
        work: impl AsyncFn(&Session, CallOptions) -> Result<T, client::Failure>,
    ) -> Result<Result<T, client::Failure>, CommandError> {
        let work = async |session: &Session, cancel| {
            self.cancellable(cancel, async |options| work(session, options).await).await
        };
        Box::pin(self.hub.request(server, work)).await.map_err(CommandError::from)
    }

    /// Sends one request to each server, in order. An unreachable server is an error or is skipped with a warning,
    /// depending on the policy.
    ///
    /// # Errors
    /// The command was interrupted.
    pub(crate) async fn each<T>(
        &self,
        work: impl AsyncFn(&Session, CallOptions) -> Result<T, client::Failure>,
    ) -> Result<ServerResults<T>, CommandError> {
        let one = |name: &Arc<str>| -> LocalBoxFuture<'_, _> {
            let (name, work) = (name.clone(), &work);
            Box::pin(async move {
                let work = async |session: &Session, cancel| {
                    self.cancellable(cancel, async |options| work(session, options).await).await
                };
                let came = self.hub.request(&name, work).await;
                (name, came)
            })
        };
        let mut came = stream::iter(&self.names).map(one).buffered(self.hub.options().concurrency.get());
        let (mut reached, mut unreachable) = (Vec::new(), Vec::new());
        while let Some((name, came)) = came.next().await {
            match came {
                Ok(came) => reached.push((name, ServerResult::Answered(came))),
                Err(HubError::Unreachable { server, error }) if self.unreachable == Unreachable::Skipped => {
                    unreachable.push((server, error.clone()));
                    reached.push((name, ServerResult::Unreachable(error)));
                }
                Err(HubError::Unreachable { server, error }) => {
                    self.check_interrupted()?;
                    let reached = vec![(name, ServerResult::Unreachable(error.clone()))];
                    return Ok(ServerResults {
                        reached,
                        outcome: Err(CommandError::from(HubError::Unreachable { server, error })),
                    });
                }
                Err(error) => return Err(CommandError::from(error)),
            }
        }
        drop(came);
        self.check_interrupted()?;
        Ok(ServerResults { reached, outcome: self.report_unreachable(&unreachable) })
    }

    /// Connects to all servers and registers their tools; warns about unreachable servers.
    ///
    /// # Errors
    /// A required server or all servers cannot be reached; or the policy rejects a duplicate tool.
    pub(super) async fn discover(&self) -> Result<Discovery, CommandError> {
        let (found, outcome) = self.discover_reachable().await?;
        outcome.map(|()| found)
    }

    /// As [`HubSession::discover`], but only until it is settled which tool has this name.
    ///
    /// # Errors
    /// As [`HubSession::discover`].
    pub(super) async fn discover_for(&self, tool: &str) -> Result<Discovery, CommandError> {
        let (found, outcome) = self.check_discovery(Box::pin(self.hub.discover_for(tool)).await)?;
        outcome.map(|()| found)
    }

    /// As [`HubSession::discover`], but returns the discovery even if unreachable servers are an error.
    ///
    /// # Errors
    /// The policy rejects a duplicate tool.
    pub(super) async fn discover_reachable(&self) -> Result<(Discovery, Result<(), CommandError>), CommandError> {
        self.check_discovery(Box::pin(self.hub.discover()).await)
    }

    fn check_discovery(
        &self,
        found: Result<Discovery, HubError>,
    ) -> Result<(Discovery, Result<(), CommandError>), CommandError> {
        let found = match found {
            Ok(found) => found,
            Err(HubError::Unreachable { server, error }) => {
                self.check_interrupted()?;
                let unreachable = vec![(server.clone(), error.clone())];
                let found = Discovery { unreachable, ..Discovery::default() };
                return Ok((found, Err(CommandError::from(HubError::Unreachable { server, error }))));
            }
            Err(error) => return Err(CommandError::from(error)),
        };
        self.check_interrupted()?;
        let outcome = self.report_unreachable(&found.unreachable);
        Ok((found, outcome))
    }

    /// # Errors
    /// The command was interrupted, so its results are incomplete.
    fn check_interrupted(&self) -> Result<(), CommandError> {
        match self.is_interrupted.is_cancelled() {
            true => Err(client::Failure::Cancelled.into()),
            false => Ok(()),
        }
    }

    /// Prints what was filtered, and warns about the first tools that were left out or renamed.
    pub(crate) fn print_notices(&self, notices: &[Notice]) {
        if log::is_json() {
            return notices.iter().for_each(|notice| self.record(notice));
        }
        let (filtered, others): (Vec<_>, Vec<_>) =
            notices.iter().partition(|notice| matches!(notice, Notice::Filtered { .. }));
        filtered.iter().for_each(|notice| self.note(&notice.to_string()));
        first_notices(&others).for_each(|text| self.warn(&text));
    }

    /// Warns about unreachable servers.
    ///
    /// # Errors
    /// No server can be reached.
    fn report_unreachable(&self, unreachable: &[(Arc<str>, Arc<ConnectError>)]) -> Result<(), CommandError> {
        if let ([(server, error)], 1) = (unreachable, self.names.len()) {
            let (server, error) = (server.clone(), error.clone());
            return Err(CommandError::from(HubError::Unreachable { server, error }));
        }
        self.warn_unreachable(unreachable);
        match unreachable.len() == self.names.len() {
            true => Err(Failure::cannot("no MCP server can be reached").into()),
            false => Ok(()),
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        self.say(&format!("{DOUBTFUL}warning:{DOUBTFUL:#}"), text);
    }

    pub(crate) fn note(&self, text: &str) {
        self.say(&format!("{DIM}info:{DIM:#}"), text);
    }

    fn say(&self, level: &str, text: &str) {
        if !self.is_interrupted() {
            self.print_always(level, text);
        }
    }

    /// Prints even after an interruption.
    pub(super) fn print_always(&self, level: &str, text: &str) {
        let lines: Vec<_> = printable_lines(&self.message(text)).collect();
        style::print(&format!("{level} {}\n", lines.join("\n  ")));
    }
}

/// The texts of the first notices, and how many more there are.
pub(crate) fn first_notices<T: fmt::Display>(notices: &[T]) -> impl Iterator<Item = String> {
    let more = notices.len().saturating_sub(MAX_NOTICES);
    let more = (more > 0).then(|| format!("… and {more} more"));
    notices.iter().take(MAX_NOTICES).map(T::to_string).chain(more)
}

/// The message about a server that lost its session.
pub(crate) fn renewal_message(server: &str) -> String {
    format!("MCP server '{server}' lost the session; a new one was opened")
}

/// The results of a request to several servers. `outcome` is an error if a required server or all servers cannot be
/// reached.
pub(crate) struct ServerResults<T> {
    pub(crate) reached: Vec<(Arc<str>, ServerResult<T>)>,
    pub(crate) outcome: Result<(), CommandError>,
}

/// The result of a request to one of several servers.
pub(crate) enum ServerResult<T> {
    Answered(Result<T, client::Failure>),
    Unreachable(Arc<ConnectError>),
}
