//! The servers of a running cell: fresh mocks, and the sessions with them.

use std::{collections::HashSet, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{RunOptions, connections::Connections, error::StartError};
use crate::file::{
    Action, ServerSpec,
    server::{ServerKind, TargetSpec, path_with},
};
use rehearse_client::{
    Answers, CommandSpec, Endpoint, NetworkServer, Readiness, ServerParams, Session, StderrSink, Target, Timeouts,
    address,
};
use rehearse_client_configs::policy::Unreachable;
use rehearse_hub::{ApprovalMode, Discovery, Hub, HubOptions, HubServer};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, PipeServer},
};
use rehearse_net::pipe;
use rehearse_protocol::{Transport, Version};
use rehearse_report::Cell;

const MOCK_GRACE: Duration = Duration::from_millis(500);

/// A server of a running cell.
pub(crate) struct RunningServer {
    /// How to open a session with it; `None` for the servers of a config, which have only the hub.
    pub(crate) config: Option<ServerParams>,
    pub(crate) answers: Answers,
    pub(crate) timeouts: Timeouts,
    process: Option<LocalServer>,
    /// Its tools for agents. Connected by the first step that needs it.
    pub(crate) hub: Hub,
    /// What the hub found.
    pub(crate) discovery: Option<Discovery>,
    /// The negotiated version, once it is known.
    pub(crate) version: Option<Version>,
    /// Opened by the first step that needs it.
    pub(crate) session: Option<Session>,
    /// The frames with notifications that steps have consumed.
    pub(crate) consumed: Mutex<HashSet<usize>>,
}

/// A server that lasts as long as its cell. A process on stdio is owned by its session.
enum LocalServer {
    /// A mock inside this process.
    Mock(MockServer),
    /// A mock behind a pipe of this process.
    Memory { stop: CancellationToken, serving: tokio::task::JoinHandle<()> },
    /// A command that listens on the network.
    Command(Box<NetworkServer>),
}

impl RunningServer {
    /// Starts the server if it is a mock, or a command that listens on the network.
    ///
    /// # Errors
    /// The server cannot start: its script has changed, no port is free, or its command is not ready in time.
    pub(crate) async fn start(
        (index, spec): (usize, &ServerSpec),
        answers: Answers,
        cell: Cell,
        options: &RunOptions,
        stderr: StderrSink,
        connections: &Connections,
        shutdown: &CancellationToken,
    ) -> Result<RunningServer, StartError> {
        let (transport, of_hub) = (cell.transport, stderr.clone());
        let (process, target) = match &spec.kind {
            ServerKind::Targets(targets) => {
                let target = targets.iter().find(|it| it.target.transport() == transport);
                let target = target.ok_or_else(|| StartError::NoTransport { server: spec.name.clone(), transport })?;
                let (process, target) = start_command(spec, target, stderr, shutdown).await?;
                (process, Some(target))
            }
            ServerKind::Config(_) => (None, None),
            ServerKind::Subagent(config) => {
                let target = TargetSpec::for_subagent(config, &options.rehearse, transport);
                let target = target.map_err(|source| StartError::Target { server: spec.name.clone(), source })?;
                let (process, target) = start_command(spec, &target, stderr, shutdown).await?;
                (process, Some(target))
            }
            ServerKind::Mock(path, headers) => {
                let (process, target) = start_mock(path, headers, transport, options).await?;
                (process, Some(target))
            }
        };
        let timeouts = spec.timeouts;
        let with_answers = |params| {
            let trace = options.hooks.new_trace.map(|new_trace| new_trace());
            let params = ServerParams { answers: answers.clone(), shutdown: shutdown.clone(), trace, ..params };
            options.host.iter().fold(params, |params, host| host.apply(params))
        };
        let config =
            target.map(|target| with_answers(ServerParams { timeouts, ..ServerParams::new(&spec.name, target) }));
        let usual = HubOptions { unreachable: Unreachable::Fatal, ..HubOptions::default() };
        let (members, usual) = match &spec.kind {
            ServerKind::Config(members) => {
                let member = |member: &HubServer| {
                    let mut params = with_answers(member.config.clone());
                    if let Target::Stdio(command) = &mut params.target {
                        command.env.entry("PATH".to_owned()).or_insert_with(|| path_with(&options.rehearse));
                    }
                    HubServer { config: params, ..member.clone() }
                };
                let policy = members.first().map(|member| HubOptions::from_policy(member.policy));
                (members.iter().map(member).collect(), policy.unwrap_or(usual))
            }
            _ => (config.iter().cloned().map(HubServer::new).collect::<Vec<_>>(), usual),
        };
        let connections = connections.clone();
        let hub = HubOptions {
            protocol: cell.protocol,
            approval: ApprovalMode::AllowAll,
            watch_changes: false,
            stderr: Some(of_hub),
            record_sink: Some(Arc::new(move |name, recorder| connections.add(index, name, recorder))),
            ..usual
        };
        Ok(RunningServer {
            config,
            answers,
            timeouts,
            process,
            hub: Hub::new(members, hub),
            discovery: None,
            version: None,
            session: None,
            consumed: Mutex::default(),
        })
    }

    /// Whether an action uses the hub of the server, and not its session.
    pub(crate) fn uses_hub(&self, action: &Action) -> bool {
        self.config.is_none() || matches!(action, Action::Agent(_))
    }

    /// Closes the session and stops the server.
    pub(crate) async fn stop(self, shutdown: &CancellationToken) {
        self.hub.close().await;
        if let Some(session) = self.session {
            session.close().await;
        }
        match self.process {
            Some(LocalServer::Mock(server)) => server.stop(MOCK_GRACE).await,
            Some(LocalServer::Memory { stop, serving }) => {
                stop.cancel();
                let _ = serving.await;
            }
            Some(LocalServer::Command(server)) => server.stop(shutdown).await,
            None => {}
        }
    }
}

/// Starts the command that serves the URL, if there is one.
async fn start_command(
    server: &ServerSpec,
    target: &TargetSpec,
    stderr: StderrSink,
    shutdown: &CancellationToken,
) -> Result<(Option<LocalServer>, Target), StartError> {
    let name = || server.name.clone();
    let spec = target.with_free_port();
    let TargetSpec { target, command } = spec.map_err(|source| StartError::Target { server: name(), source })?;
    let Some(network) = command else { return Ok((None, target)) };
    let Some(at) = target.endpoint() else { return Ok((None, target)) };
    let address = address(&at.url).ok_or_else(|| StartError::NoHost(name()))?;
    let readiness = network.ready.map_or(Readiness::Address, Readiness::Output);
    let (at, limit) = ((&*server.name, &*address), server.timeouts.connect);
    let started = NetworkServer::start(&network.command, at, readiness, stderr, limit, shutdown).await;
    let server = started.map_err(|source| StartError::Command { server: name(), source })?;
    Ok((Some(LocalServer::Command(Box::new(server))), target))
}

async fn start_mock(
    path: &Path,
    headers: &[(String, String)],
    transport: Transport,
    options: &RunOptions,
) -> Result<(Option<LocalServer>, Target), StartError> {
    if transport == Transport::Stdio {
        let args = vec!["mock".into(), path.display().to_string(), "--seed".into(), options.seed.to_string()];
        let program = options.rehearse.display().to_string();
        return Ok((None, Target::Stdio(CommandSpec { program, args, ..CommandSpec::default() })));
    }
    let script = Script::load(path, options.builtin_scripts)?;
    let engine = Engine::new(script, options.seed, Journal::default());
    if transport == Transport::Memory {
        let (address, listener) = pipe::listen();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve_memory(engine, listener, stop.clone()));
        return Ok((Some(LocalServer::Memory { stop, serving }), Target::Memory(address)));
    }
    let server = MockServer::start(engine, ListenOptions::default()).await.map_err(StartError::Listen)?;
    let endpoint = Endpoint { url: server.url(transport).unwrap_or_default(), headers: headers.to_vec() };
    let target = Target::at(transport, endpoint.clone()).unwrap_or(Target::Http(endpoint));
    Ok((Some(LocalServer::Mock(server)), target))
}

async fn serve_memory(engine: Arc<Engine>, mut listener: pipe::Listener, stop: CancellationToken) {
    let pipes = PipeServer::new(engine);
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Some(pipe) => {
                    let (reader, writer) = tokio::io::split(pipe);
                    let (pipes, stop) = (pipes.clone(), stop.clone());
                    let serving = async move { pipes.serve(Transport::Memory, reader, writer, stop, MOCK_GRACE).await };
                    connections.spawn(serving);
                }
                None => break,
            },
            () = stop.cancelled() => break,
        }
    }
    stop.cancel();
    while connections.join_next().await.is_some() {}
    pipes.end().await;
}
