//! The servers of a running cell: fresh mocks, and the sessions with them.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{RunOptions, ServerSpec, server::ServerKind};
use rehearse_client::{Answers, CommandSpec, Endpoint, ServerParams, Session, Target, TraceRecorder};
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
    mock: Option<LocalMock>,
    /// The recorded frames of the last attempt to open a session.
    pub(super) recorder: Option<TraceRecorder>,
    /// Opened by the first step that needs it.
    pub(super) session: Option<Session>,
    /// The frames with notifications that steps have consumed.
    pub(super) consumed: Mutex<HashSet<usize>>,
}

/// A mock inside this process. On stdio the mock is a child process that the session owns.
enum LocalMock {
    Network(MockServer),
    Memory { stop: CancellationToken, serving: tokio::task::JoinHandle<()> },
}

impl RunningServer {
    /// Starts the server if it is a mock.
    ///
    /// # Errors
    /// The mock cannot start: its script has changed, or no port is free.
    pub(super) async fn start(
        spec: &ServerSpec,
        answers: Answers,
        transport: Transport,
        options: &RunOptions,
        shutdown: &CancellationToken,
    ) -> Result<RunningServer, String> {
        let (mock, target) = match &spec.kind {
            ServerKind::Target(target) => (None, target.clone()),
            ServerKind::Mock(path, headers) => start_mock(path, headers, transport, options).await?,
        };
        let (timeouts, shutdown) = (spec.timeouts, shutdown.clone());
        let config = ServerParams { timeouts, answers, shutdown, ..ServerParams::new(&spec.name, target) };
        Ok(RunningServer { config, mock, recorder: None, session: None, consumed: Mutex::default() })
    }

    /// Closes the session and stops the mock.
    pub(super) async fn stop(self) {
        if let Some(session) = self.session {
            session.close().await;
        }
        match self.mock {
            Some(LocalMock::Network(server)) => server.stop(MOCK_GRACE).await,
            Some(LocalMock::Memory { stop, serving }) => {
                stop.cancel();
                let _ = serving.await;
            }
            None => {}
        }
    }
}

async fn start_mock(
    path: &Path,
    headers: &[(String, String)],
    transport: Transport,
    options: &RunOptions,
) -> Result<(Option<LocalMock>, Target), String> {
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
        return Ok((Some(LocalMock::Memory { stop, serving }), Target::Memory(address)));
    }
    let server = MockServer::start(engine, ListenOptions::default()).await;
    let server = server.map_err(|error| format!("a mock cannot listen on 127.0.0.1: {error}"))?;
    let endpoint = Endpoint { url: server.url(transport).unwrap_or_default(), headers: headers.to_vec() };
    let target = match transport {
        Transport::Sse => Target::Sse(endpoint),
        Transport::Ws => Target::Ws(endpoint),
        _ => Target::Http(endpoint),
    };
    Ok((Some(LocalMock::Network(server)), target))
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
