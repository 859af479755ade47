//! The state of a REPL, and the execution of commands.

use std::{collections::HashMap, convert::Infallible, error::Error, iter::successors, sync::Arc, time::Instant};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    args::ReplArgs,
    backoff::ReconnectBackoff,
    chat::Chat,
    command::{self, Command},
    complete::{KnownNames, quoted},
    debug_switch::{DebugSwitch, VARIABLE},
    error::ShellError,
    initial_connections::InitialConnections,
};
use crate::cli::{
    Exit, Failure,
    mcp::{
        error::CommandError,
        print::{print_unchecked, trace::Tracer},
        session::{CANCEL_GRACE, HubSession, without_stderr},
        target::{Files, Server},
    },
    output,
    secrets::Secrets,
    style::{self, BAD, DIM, STRONG},
    terminal_user::{ApprovalChoice, TerminalUser},
};
use rehearse_client::{AnswerScript, ConnectError, LastLines, StderrLine};
use rehearse_client_configs::{Machine, policy::Unreachable};
use rehearse_document::nearest;
use rehearse_hub::{
    ApprovalMode, ConnectMode, ConnectionState, Hub, HubError, HubOptions, HubServer, Notice, ServerStatus,
};
use rehearse_protocol::List;
use rehearse_report::text::printable_lines;

pub(super) struct Shell {
    pub(super) args: ReplArgs,
    answers: AnswerScript,
    pub(super) hub: Hub,
    /// The conversation with a model.
    pub(super) chat: Option<Chat>,
    pub(super) person: Option<TerminalUser>,
    pub(super) switch: Arc<DebugSwitch>,
    /// The reconnection backoff of each server.
    pub(super) backoffs: Mutex<HashMap<Arc<str>, ReconnectBackoff>>,
    /// When the last connection attempt to each server started.
    pub(super) started: Arc<Mutex<HashMap<Arc<str>, Instant>>>,
    pub(super) tracer: Tracer,
    pub(super) unreachable: Unreachable,
    loaded: Mutex<Arc<LoadedConfigs>>,
    recent_stderr: Arc<Mutex<HashMap<Arc<str>, LastLines>>>,
    pub(super) initial_connections: InitialConnections,
    /// Cancelled when this process should exit.
    pub(super) shutdown: CancellationToken,
    /// The notices that were printed.
    notices: Mutex<Vec<Notice>>,
    /// Serializes reloads.
    pub(super) reloading: tokio::sync::Mutex<()>,
}

/// The servers of the loaded configs, with their secrets and files.
#[derive(Debug)]
pub(super) struct LoadedConfigs {
    pub(super) servers: Vec<Server>,
    pub(super) secrets: Secrets,
    pub(super) files: Files,
}

impl LoadedConfigs {
    pub(super) fn new(servers: Vec<Server>, files: Files) -> LoadedConfigs {
        let secrets = servers.iter().fold(Secrets::default(), |all, server| all.merge(&server.resolved.secrets));
        LoadedConfigs { servers, secrets, files }
    }
}

impl Shell {
    /// A shell without connections.
    ///
    /// # Errors
    /// The transport of the only server does not support the requested version.
    pub(super) fn new(
        args: ReplArgs,
        servers: Vec<Server>,
        files: Files,
        answers: AnswerScript,
        person: Option<TerminalUser>,
        chat: Option<Chat>,
    ) -> Result<Shell, Failure> {
        let variable = Machine::here().variables.remove(VARIABLE);
        let switch = Arc::new(DebugSwitch::new(args.debug || args.connection.trace, variable.as_deref()));
        apply_config_debug(&switch, &servers);
        let loaded = LoadedConfigs::new(servers, files);
        let shows = switch.clone();
        let secrets = (!args.connection.show_secrets).then(|| loaded.secrets.clone());
        let shows_log = chat.is_some() && !args.connection.quiet;
        let tracer = Tracer::filtered(secrets, true, Arc::new(move |server| shows.is_on(server)), shows_log);
        let (recent_stderr, started) = (
            Arc::<Mutex<HashMap<Arc<str>, LastLines>>>::default(),
            Arc::<Mutex<HashMap<Arc<str>, Instant>>>::default(),
        );
        let mut options = options(&args, &loaded.servers, person.as_ref());
        options.stderr = Some({
            let (show, recent_stderr) = (tracer.stderr(!args.connection.quiet), recent_stderr.clone());
            Arc::new(move |line: StderrLine| {
                recent_stderr.lock().entry(line.server.clone()).or_default().push(line.line.clone());
                show(line);
            })
        });
        options.all_stderr = args.debug;
        options.record_sink = Some({
            let (follow, started) = (tracer.records(), started.clone());
            Arc::new(move |server, recorder| {
                started.lock().insert(server.clone(), Instant::now());
                follow(server, recorder);
            })
        });
        let unreachable = options.unreachable;
        let shutdown = CancellationToken::new();
        let mut members = args.connection.members(&loaded.servers, &answers, person.as_ref(), &shutdown)?;
        chat.iter().for_each(|chat| chat.inject_address(&mut members));
        members.iter().for_each(|member| tracer.follow_authorizer(&member.config));
        Ok(Shell {
            hub: Hub::new(members, options),
            chat,
            args,
            answers,
            person,
            switch,
            backoffs: Mutex::default(),
            started,
            tracer,
            unreachable,
            loaded: Mutex::new(Arc::new(loaded)),
            recent_stderr,
            initial_connections: InitialConnections::default(),
            shutdown,
            notices: Mutex::default(),
            reloading: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn loaded(&self) -> Arc<LoadedConfigs> {
        self.loaded.lock().clone()
    }

    /// Applies loaded configs except for connections, and returns the servers for the hub.
    ///
    /// # Errors
    /// The transport of the only server does not support the requested version.
    pub(super) fn load(&self, servers: Vec<Server>, files: Files) -> Result<Vec<HubServer>, Failure> {
        let mut members =
            self.args.connection.members(&servers, &self.answers, self.person.as_ref(), &self.shutdown)?;
        self.chat.iter().for_each(|chat| chat.inject_address(&mut members));
        apply_config_debug(&self.switch, &servers);
        let loaded = LoadedConfigs::new(servers, files);
        self.tracer.hide((!self.args.connection.show_secrets).then(|| loaded.secrets.clone()));
        *self.loaded.lock() = Arc::new(loaded);
        members.iter().for_each(|member| self.tracer.follow_authorizer(&member.config));
        Ok(members)
    }

    /// Prints which tools were left out or renamed since the last time.
    pub(super) fn print_new_notices(&self) {
        let (hub_session, now) = (self.hub_session(), self.hub.registry().notices.clone());
        let before = std::mem::replace(&mut *self.notices.lock(), now.clone());
        let new: Vec<_> = now.into_iter().filter(|notice| !before.contains(notice)).collect();
        hub_session.print_notices(&new);
    }

    /// Connects to these servers, several at a time, and prints the results. Returns those that failed; `None` if the
    /// command must exit.
    pub(super) async fn connect_to(
        &self,
        names: Vec<Arc<str>>,
        unreachable: Unreachable,
    ) -> Option<Vec<(Arc<str>, Arc<ConnectError>)>> {
        let hub_session = self.hub_session();
        let connect = |name: Arc<str>| async move {
            let came = Box::pin(self.hub.connect(&name)).await;
            (name, came)
        };
        let (connecting, at_once) = (stream::iter(names).map(connect), self.hub.options().concurrency.get());
        let mut connecting = match unreachable {
            Unreachable::Fatal => connecting.buffered(at_once).left_stream(),
            Unreachable::Skipped => connecting.buffer_unordered(at_once).right_stream(),
        };
        let (mut failed, mut is_listed) = (Vec::new(), true);
        while let Some((name, came)) = connecting.next().await {
            match came {
                Ok(None) => hub_session.note(&format!("connected to MCP server '{name}': {}", self.count(&name))),
                Ok(Some(failure)) => {
                    hub_session.warn(&format!("failed to list MCP tools for server {name}: {failure}"));
                    is_listed = false;
                }
                // Another command was faster.
                Err(HubError::Disabled(_) | HubError::UnknownServer(_)) => {}
                Err(HubError::Unreachable { error, .. }) if matches!(*error, ConnectError::Cancelled) => {}
                Err(HubError::Unreachable { server, error }) => {
                    failed.push((server.clone(), error.clone()));
                    hub_session.warn(&format!("MCP server '{server}' connection failed: {error}"));
                    self.debug_causes(&server, &error);
                    self.print_auth_hint(&server);
                    if unreachable == Unreachable::Fatal {
                        return None;
                    }
                }
                Err(HubError::Duplicate(duplicate)) => hub_session.warn(&duplicate.to_string()),
            }
            self.initial_connections.mark_done(name);
        }
        if unreachable == Unreachable::Fatal && !is_listed && self.hub.registry().tools().is_empty() {
            hub_session.warn("no MCP server has listed a tool");
            return None;
        }
        Some(failed)
    }

    pub(super) fn count(&self, server: &str) -> String {
        match self.hub.registry().server_tools(server).count() {
            1 => "1 tool".to_owned(),
            count => format!("{count} tools"),
        }
    }

    /// Runs a command and returns whether it succeeded. After a cancellation only the server is notified.
    pub(super) async fn run(&self, command: Command, is_piped: bool, cancel: &CancellationToken) -> bool {
        let work = async {
            // A model gets the tools of all servers.
            if is_piped || matches!(command, Command::Say(_)) {
                self.ready_for(&command).await;
            }
            match command {
                Command::Say(text) => self.say(&text, cancel).await,
                Command::Call(args) => self.call(args, cancel).await,
                Command::Read(args) => self.read(&args, cancel).await,
                Command::Prompt(args) => self.prompt(args, cancel).await,
                other => {
                    let done = cancel.run_until_cancelled(Box::pin(self.run_short(other))).await;
                    done.unwrap_or(Ok(Exit::CannotRun))
                }
            }
        };
        // Cancelled requests notify the server themselves.
        let given_up = async {
            cancel.cancelled().await;
            tokio::time::sleep(CANCEL_GRACE).await;
        };
        let done = tokio::select! {
            biased;
            done = Box::pin(work) => done,
            () = given_up => Ok(Exit::CannotRun),
        };
        match done {
            Ok(Exit::Success) => return true,
            _ if cancel.is_cancelled() => self.error("cancelled"),
            Ok(_) => {}
            Err(error) => self.print_error(&error),
        }
        false
    }

    /// Sends a message to the model.
    async fn say(&self, text: &str, cancel: &CancellationToken) -> Result<Exit, ShellError> {
        let Some(chat) = &self.chat else { return Ok(Exit::Usage) };
        if self.args.lazy {
            self.connect_waiting(&self.session_for_target(None)?).await;
        }
        let said = Box::pin(chat.say(&self.hub, text, cancel)).await;
        said.map(|()| Exit::Success).map_err(ShellError::new)
    }

    async fn run_short(&self, command: Command) -> Result<Exit, ShellError> {
        match command {
            Command::Status => self.status().await,
            Command::ListTools { server } => self.list_tools(server.as_deref()).await,
            Command::Connect { server } => self.connect(&server).await,
            Command::Disconnect { server } => self.disconnect(&server).await,
            Command::Reconnect { server } => self.reconnect(&server).await,
            Command::Enable { server } => self.enable(&server).await,
            Command::Disable { server } => self.disable(&server).await,
            Command::Debug { server, switch } => self.debug_command(server, switch).await,
            Command::Auth { server, logout } => Box::pin(self.auth(&server, logout)).await,
            Command::Resources(args) => self.resources(args.name()).await,
            Command::Prompts(args) => self.prompts(args.name()).await,
            Command::Reload if !self.reload().await => Ok(Exit::Violation),
            Command::Usage => {
                self.print_usage();
                Ok(Exit::Success)
            }
            Command::Explain(text) => {
                print_unchecked(&text);
                Ok(Exit::Success)
            }
            Command::Help { .. } => {
                print_unchecked(&command::help(self.chat.is_some()));
                Ok(Exit::Success)
            }
            // The others run elsewhere.
            _ => Ok(Exit::Success),
        }
    }

    /// A session with all enabled servers.
    pub(super) fn hub_session(&self) -> HubSession {
        self.session_for(self.names_in_state(|state| state != ConnectionState::Disabled))
    }

    fn names_in_state(&self, is_included: impl Fn(ConnectionState) -> bool) -> Vec<Arc<str>> {
        let statuses = self.hub.status().into_iter();
        statuses.filter(|(_, status)| is_included(status.state)).map(|(name, _)| name).collect()
    }

    pub(super) fn session_for(&self, names: Vec<Arc<str>>) -> HubSession {
        let (secrets, person) = (self.loaded().secrets.clone(), self.person.clone());
        HubSession::for_hub(self.hub.clone(), names, secrets, person, !self.args.connection.quiet)
    }

    /// A session with one server, or with all that are connected or connect lazily.
    ///
    /// # Errors
    /// The server is unknown.
    pub(super) fn session_for_target(&self, server: Option<&str>) -> Result<HubSession, HubError> {
        Ok(match server {
            None => self.session_for(self.names_in_state(|state| match state {
                ConnectionState::Connected => true,
                ConnectionState::NotConnected => self.args.lazy,
                ConnectionState::Connecting | ConnectionState::Failed | ConnectionState::Disabled => false,
            })),
            Some(server) => {
                self.hub.server(server)?;
                self.session_for(vec![server.into()])
            }
        })
    }

    /// Whether a line is for a model.
    pub(super) fn is_message(&self, line: &str) -> bool {
        self.chat.is_some() && !line.trim_start().starts_with('/')
    }

    /// The names for completion.
    pub(super) fn known(&self) -> KnownNames {
        let servers = self.hub.status().into_iter().map(|(name, _)| name).collect();
        KnownNames {
            servers,
            tools: self.hub.registry().tools().to_vec(),
            resources: self.hub.known_items(List::Resources),
            prompts: self.hub.known_items(List::Prompts),
        }
    }

    /// Asks connected servers for their items, if one was not asked yet.
    pub(super) async fn list_unknown(&self, kind: List) {
        let is_unknown = |(_, status): (Arc<str>, ServerStatus)| {
            let count = if kind == List::Prompts { status.prompts } else { status.resources };
            status.state == ConnectionState::Connected && count.is_none()
        };
        if self.hub.status().into_iter().any(is_unknown) {
            drop(self.hub.items(kind).await);
        }
    }

    /// The last stderr lines of a server.
    pub(super) fn recent_stderr(&self, server: &str) -> Vec<String> {
        self.recent_stderr.lock().get(server).map(LastLines::to_vec).unwrap_or_default()
    }

    /// Hides the secrets of all servers in a text.
    pub(super) fn hidden(&self, text: &str) -> String {
        self.loaded().secrets.hidden(text)
    }

    /// Prints an error.
    pub(super) fn error(&self, text: &str) {
        let text = self.hidden(if self.args.connection.quiet { text } else { without_stderr(text) });
        let lines: Vec<_> = printable_lines(&text).collect();
        style::print(&format!("{BAD}error:{BAD:#} {}\n", lines.join("\n  ")));
    }

    /// The error of a hub, with what may be meant.
    pub(super) fn hub_error_text(&self, error: &HubError) -> String {
        let near = match error {
            HubError::UnknownServer(name) => {
                let names: Vec<_> = self.hub.status().into_iter().map(|(name, _)| name).collect();
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                nearest(name, &names).map(|near| format!("; did you mean '{near}'?"))
            }
            _ => None,
        };
        let text = match error {
            HubError::Unreachable { server, error } => format!("MCP server '{server}' connection failed: {error}"),
            HubError::Disabled(server) => format!("{error}; type 'enable {server}' to enable it"),
            other => other.to_string(),
        };
        text + &near.unwrap_or_default()
    }

    /// Prints the error of a hub.
    pub(super) fn print_hub_error(&self, error: &HubError) {
        self.error(&self.hub_error_text(error));
        if let HubError::Unreachable { server, error } = error {
            self.debug_causes(server, error);
            self.print_auth_hint(server);
        }
    }

    fn print_error(&self, error: &ShellError) {
        match error {
            ShellError::Hub(error) => self.print_hub_error(error),
            ShellError::Command(CommandError::Call(failure)) => self.hub_session().print_failure(failure),
            ShellError::Command(CommandError::Listing(what)) => self.error(what),
            // A failed write is reported at the end.
            ShellError::Command(CommandError::Failure(_)) if output::check_writes().is_err() => {}
            ShellError::Command(CommandError::Failure(failure)) => self.error(&failure.to_string()),
        }
    }

    /// Prints how to authorize a server.
    pub(super) fn print_auth_hint(&self, server: &str) {
        let Ok(member) = self.hub.server(server) else { return };
        let Some(authorizer) = &member.config.authorizer else { return };
        if authorizer.failure().is_some_and(|error| error.needs_user()) {
            let server = quoted(server.to_owned());
            style::print(&format!("{STRONG}hint:{STRONG:#} auth {}\n", style::printable(&server)));
        }
    }

    /// Prints a debug message about a server in debug mode.
    pub(super) fn debug(&self, server: &str, text: &str) {
        if self.switch.is_on(server) {
            style::print(&format!("{DIM}debug: {}{DIM:#}\n", style::printable(&self.hidden(text))));
        }
    }

    /// Prints an error and its causes with their kinds, in debug mode.
    fn debug_causes(&self, server: &str, error: &ConnectError) {
        for cause in successors(Some(error as &dyn Error), |&cause| cause.source()) {
            // Only the kind: the fields may have secrets in a form that is not masked.
            let fields = format!("{cause:?}");
            let kind = fields.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let text = cause.to_string();
            self.debug(server, &format!("caused by {kind}: {}", text.lines().next().unwrap_or_default()));
        }
    }

    /// Closes all connections.
    pub(super) async fn close(&self) {
        self.hub.close().await;
        self.tracer.clone().finish().await;
    }
}

/// The options of the first server's client.
fn options(args: &ReplArgs, servers: &[Server], person: Option<&TerminalUser>) -> HubOptions {
    let usual = servers.first().map(|server| HubOptions::from_policy(server.policy)).unwrap_or_default();
    let approve = match (args.approve, &usual.approval) {
        (Some(approve), _) => approve,
        (None, ApprovalMode::AllowAll) => ApprovalChoice::Always,
        (None, _) if args.yes => ApprovalChoice::Always,
        (None, _) => ApprovalChoice::Ask,
    };
    let mut options = HubOptions {
        approval: approve.approval(person),
        connect: if args.lazy { ConnectMode::Lazy } else { ConnectMode::Eager },
        health_interval: args.health,
        result_ttl: args.result_ttl,
        ..usual
    };
    args.connection.apply(&mut options);
    args.policy.apply(&mut options);
    args.calls.apply(&mut options);
    options.repeats_calls = args.retries > 0;
    options
}

/// Enables debug mode for servers whose config requests it.
fn apply_config_debug(switch: &DebugSwitch, servers: &[Server]) {
    for server in servers {
        if let Some(debug) = server.written.debug.as_ref().filter(|debug| debug.value) {
            switch.apply_default(server.name(), debug.value);
        }
    }
}

/// The type of futures that never end.
pub(super) type Never = Infallible;
