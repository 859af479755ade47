//! The servers of a running cell: fresh mocks, and the sessions with them.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{
    RunOptions, ServerSpec,
    server::{ServerKind, TargetSpec},
};
use rehearse_client::{
    Answers, CommandSpec, Endpoint, NetworkServer, Readiness, ServerParams, Session, StderrSink, Target, TraceRecorder,
};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer, PipeServer},
};
use rehearse_net::pipe;
use rehearse_protocol::Transport;

const MOCK_GRACE: Duration = Duration::from_millis(500);

/// A server of a running cell.
pub(super) struct RunningServer {
    pub(super) config: ServerParams,
    process: Option<LocalServer>,
    /// The recorded frames of the last attempt to open a session.
    pub(super) recorder: Option<TraceRecorder>,
    /// Opened by the first step that needs it.
    pub(super) session: Option<Session>,
    /// The frames with notifications that steps have consumed.
    pub(super) consumed: Mutex<HashSet<usize>>,
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
    pub(super) async fn start(
        spec: &ServerSpec,
        answers: Answers,
        transport: Transport,
        options: &RunOptions,
        stderr: StderrSink,
        shutdown: &CancellationToken,
    ) -> Result<RunningServer, String> {
        let (process, target) = match &spec.kind {
            ServerKind::Targets(targets) => {
                let target = targets.iter().find(|it| it.target.transport() == transport);
                let target =
                    target.ok_or_else(|| format!("the server `{}` does not support {transport}", spec.name))?;
                start_command(spec, target, stderr, shutdown).await?
            }
            ServerKind::Subagent(config) => {
                let target = TargetSpec::for_subagent(config, &options.rehearse, transport);
                let target = target.map_err(|error| format!("cannot start the server `{}`: {error}", spec.name))?;
                start_command(spec, &target, stderr, shutdown).await?
            }
            ServerKind::Mock(path, headers) => start_mock(path, headers, transport, options).await?,
        };
        let (timeouts, shutdown) = (spec.timeouts, shutdown.clone());
        let config = ServerParams { timeouts, answers, shutdown, ..ServerParams::new(&spec.name, target) };
        Ok(RunningServer { config, process, recorder: None, session: None, consumed: Mutex::default() })
    }

    /// Closes the session and stops the server.
    pub(super) async fn stop(self) {
        if let Some(session) = self.session {
            session.close().await;
        }
        match self.process {
            Some(LocalServer::Mock(server)) => server.stop(MOCK_GRACE).await,
            Some(LocalServer::Memory { stop, serving }) => {
                stop.cancel();
                let _ = serving.await;
            }
            Some(LocalServer::Command(server)) => server.stop(&self.config.shutdown).await,
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
) -> Result<(Option<LocalServer>, Target), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot start the server `{}`: {error}", server.name);
    let TargetSpec { target, command } = target.with_free_port().map_err(|error| failed(&error))?;
    let Some(network) = command else { return Ok((None, target)) };
    let readiness = match (network.ready, &target) {
        (Some(text), _) => Readiness::Output(text),
        (None, Target::Http(at) | Target::Sse(at) | Target::Ws(at)) => {
            Readiness::from_url(&at.url).ok_or_else(|| failed(&"the URL has no host"))?
        }
        (None, Target::Stdio(_) | Target::Memory(_)) => return Ok((None, target)),
    };
    let limit = server.timeouts.connect;
    let started = NetworkServer::start(&network.command, &server.name, readiness, stderr, limit, shutdown).await;
    let server = started.map_err(|error| failed(&error))?;
    Ok((Some(LocalServer::Command(Box::new(server))), target))
}

async fn start_mock(
    path: &Path,
    headers: &[(String, String)],
    transport: Transport,
    options: &RunOptions,
) -> Result<(Option<LocalServer>, Target), String> {
    if transport == Transport::Stdio {
        let args = vec!["mock".into(), path.display().to_string(), "--seed".into(), options.seed.to_string()];
        let program = options.rehearse.display().to_string();
        return Ok((None, Target::Stdio(CommandSpec { program, args, ..CommandSpec::default() })));
    }
    let script = Script::load(path, options.builtin_scripts).map_err(|error| error.to_string())?;
    let engine = Engine::new(script, options.seed, Journal::default());
    if transport == Transport::Memory {
        let (address, listener) = pipe::listen();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve_memory(engine, listener, stop.clone()));
        return Ok((Some(LocalServer::Memory { stop, serving }), Target::Memory(address)));
    }
    let server = MockServer::start(engine, ListenOptions::default()).await;
    let server = server.map_err(|error| format!("a mock cannot listen on 127.0.0.1: {error}"))?;
    let endpoint = Endpoint { url: server.url(transport).unwrap_or_default(), headers: headers.to_vec() };
    let target = match transport {
        Transport::Sse => Target::Sse(endpoint),
        Transport::Ws => Target::Ws(endpoint),
        _ => Target::Http(endpoint),
    };
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
