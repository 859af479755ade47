//! A run of one host.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rehearse_client::ServerParams;
use rehearse_client_configs::headless::Headless;
use rehearse_llm::{
    endpoint::{EndpointOptions, ModelEndpoint, Question},
    model::ScriptedModel,
};
use rehearse_protocol::Trace;
use rehearse_relay::RelayError;
use rehearse_system::{
    Signal, TempFolder,
    process::{ProcessChange, ProcessGroup},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    PreparedHost, asked::Asked, folders::HostFolders, prepared_host::command, proxy::RefusingProxy, relay::ServerRelay,
};

/// How long a host may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long `--version` may take.
const VERSION_LIMIT: Duration = Duration::from_secs(15);
/// How much of what a host writes is kept.
const KEPT: usize = 4 << 20;

/// A host, and what to do with it.
#[derive(Debug)]
pub struct HostOptions<'a> {
    /// How it is started.
    pub headless: &'a Headless,
    /// Its program.
    pub program: PathBuf,
    /// The server in its config.
    pub server: &'a ServerParams,
    /// The program `rehearse`, which stands for a server on stdio.
    pub rehearse: PathBuf,
    /// The model that it asks.
    pub model: ScriptedModel,
    /// What it is asked to do.
    pub prompt: String,
    /// How long it may run.
    pub limit: Duration,
    /// Ends it when cancelled.
    pub shutdown: CancellationToken,
}

/// What a host did.
#[derive(Debug)]
pub struct HostOutcome {
    /// The traffic between host and server, by connection.
    pub traces: Vec<Trace>,
    /// What the model was asked, in order.
    pub asked: Vec<Asked>,
    /// When the model was first asked, from the start of the host.
    pub asked_after: Option<Duration>,
    /// What it wrote on standard output, and on standard error.
    pub output: [String; 2],
    /// The texts of the files in which it says why something failed, each with the number of the pattern that names it.
    pub logs: Vec<(usize, String)>,
    /// The hosts that it tried to reach.
    pub tried_to_reach: Vec<String>,
    /// How it ended.
    pub end: HostEnd,
    /// How long it ran.
    pub duration: Duration,
}

/// How a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEnd {
    /// By itself, with this exit code.
    Exited(Option<i32>),
    /// It did not ask the model within its time for the start.
    NeverAsked,
    /// It ran for too long.
    TimedOut,
    /// The run was interrupted.
    Interrupted,
}

/// Why a host cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Its folders or files cannot be made, no port is free, or its process is lost.
    #[error("the host cannot be run: {0}")]
    Io(#[from] io::Error),
    /// The config cannot be written in its dialect.
    #[error("the config of the host cannot have the server: {0}")]
    Config(String),
    /// The server cannot be reached by a relay.
    #[error(transparent)]
    Relay(#[from] RelayError),
    /// A host has no such transport.
    #[error("hosts are run with servers over stdio, streamable HTTP and SSE, and this one is over {0}")]
    Transport(rehearse_protocol::Transport),
    /// The program cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Runs the host to its end.
///
/// # Errors
/// It cannot be started. What it does wrong is in the outcome.
pub async fn run_host(options: HostOptions<'_>) -> Result<HostOutcome, HostError> {
    let HostOptions { headless, program, server, rehearse, model, prompt, limit, shutdown } = options;
    let asked: Arc<Mutex<Vec<(Instant, Asked)>>> = Arc::default();
    let notes = asked.clone();
    let on_question = move |question: &Question| notes.lock().push((Instant::now(), Asked::of(question)));
    let endpoint = EndpointOptions { asked: Box::new(on_question), ..EndpointOptions::default() };
    let endpoint = ModelEndpoint::start(model, endpoint).await?;
    let pipe = TempFolder::create(&std::env::temp_dir())?;
    let relay = ServerRelay::start(server, pipe.path(), &rehearse, &shutdown).await?;
    let host = PreparedHost::create(headless, (server.name.as_str(), &relay.target()), endpoint.url(), prompt)?;
    let begun = Instant::now();
    let (mut process, output) = start(host.command(&program), &program)?;
    let (is_asked, start) = (|| !asked.lock().is_empty(), begun + headless.start_limit);
    let end = loop {
        tokio::select! {
            change = process.change() => match change? {
                ProcessChange::Ended(status) => break HostEnd::Exited(status.code()),
                ProcessChange::Stopped { .. } => drop(process.signal(Signal::Continue)),
            },
            () = sleep_until(start), if begun.elapsed() < headless.start_limit => {
                if !is_asked() {
                    break HostEnd::NeverAsked;
                }
            }
            () = sleep_until(begun + limit) => break HostEnd::TimedOut,
            () = shutdown.cancelled() => break HostEnd::Interrupted,
        }
    };
    let duration = begun.elapsed();
    process.finish(GRACE).await;
    let mut texts = [String::new(), String::new()];
    for (text, reading) in texts.iter_mut().zip(output) {
        *text = timeout(GRACE, reading).await.ok().and_then(Result::ok).unwrap_or_default();
    }
    endpoint.stop(Duration::ZERO).await;
    let traces = relay.stop().await;
    let logs = host.logs(headless);
    let asked = std::mem::take(&mut *asked.lock());
    let asked_after = asked.first().map(|(at, _)| at.duration_since(begun));
    let asked = asked.into_iter().map(|(_, question)| question).collect();
    Ok(HostOutcome {
        traces,
        asked,
        asked_after,
        output: texts,
        logs,
        tried_to_reach: host.tried_to_reach(),
        end,
        duration,
    })
}

/// What the program says of its version; `None` if it says nothing that looks like one.
///
/// # Errors
/// It cannot be started.
pub async fn version_of(program: &Path) -> Result<Option<String>, HostError> {
    let (folders, proxy) = (HostFolders::create()?, RefusingProxy::start()?);
    let command = command(program, &["--version".to_owned()], &folders.variables(proxy.url()), &folders);
    let (process, [stdout, stderr]) = start(command, program)?;
    let _ = timeout(VERSION_LIMIT, process.leader_exit()).await;
    process.finish(Duration::ZERO).await;
    let texts = [stdout, stderr].map(|reading| timeout(GRACE, reading));
    let mut found = None;
    for text in texts {
        let text = text.await.ok().and_then(Result::ok).unwrap_or_default();
        found = found.or_else(|| version_in(&text).map(str::to_owned));
    }
    Ok(found)
}

/// The first word like `1.2.3` in a text.
fn version_in(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
    let mut words = words.map(|word| word.trim_start_matches('v').trim_end_matches('.'));
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
}

type Reading = tokio::task::JoinHandle<String>;

/// Starts a program; what it writes is read at the side.
fn start(mut command: Command, program: &Path) -> Result<(ProcessGroup, [Reading; 2]), HostError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = ProcessGroup::start(command.into());
    let mut process = started.map_err(|source| HostError::Start { program: program.to_owned(), source })?;
    let pipes = process.take_pipes();
    let output = [pipes.stdout.map(boxed), pipes.stderr.map(boxed)];
    Ok((process, output.map(|stream| tokio::spawn(read(stream)))))
}

fn boxed(stream: impl AsyncRead + Send + Unpin + 'static) -> Box<dyn AsyncRead + Send + Unpin> {
    Box::new(stream)
}

/// Reads to the end, and keeps the beginning.
async fn read(stream: Option<Box<dyn AsyncRead + Send + Unpin>>) -> String {
    let (mut kept, mut part) = (Vec::new(), vec![0; 64 << 10]);
    let Some(mut stream) = stream else { return String::new() };
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        let room = KEPT.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&part[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
