//! `rehearse serve`: the subagent of a config as an MCP server.

mod events;
mod subagent_config;

use std::{
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rehearse_protocol::Transport;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::subagent_config::{Callers, SubagentFile};
use super::{
    Exit, Failure,
    mcp::target::connection::{RoutingArgs, duration},
    mock::{
        announcement,
        console::Console,
        parse_address,
        server::{SHUTDOWN_LIMIT, serve_stdio},
    },
    process_guard::block_on_guarded,
    signals::{Signals, limit_shutdown},
    spans::{OtlpArgs, SpanExporter},
    style::printable,
};
use rehearse_agent::{
    EventSink, Subagent,
    inputs::InputSources,
    store::{ConversationSink, ConversationStore, FILE_NAME, StoreError},
};
use rehearse_mock::{
    engine::Engine,
    serve::{ListenOptions, MockServer, PipeServer},
};

const EXAMPLES: &str = "\
Examples:
  rehearse serve --config coder.cpe.yaml                   # over stdio, as a client starts it
  rehearse serve --config coder.cpe.yaml --listen 8888     # http, sse and ws on one port
  rehearse mcp call-tool --stdio 'rehearse serve --config coder.cpe.yaml' coder prompt='Fix it'

In the config of the parent:
  mcpServers:
    coder: { type: stdio, command: rehearse, args: [serve, --config, ./coder.cpe.yaml] }";

/// How long a run may take to stop its servers after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// Serve the subagent of a config as an MCP server with one tool
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ServeArgs {
    /// The config of the subagent: `models`, `defaults`, `subagent` and `mcpServers`
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Serve HTTP, SSE and WebSocket on this address or port (0: a free port) instead of stdio
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// With --listen, a folder whose files callers may name as `inputs`; other files and URLs are refused. May be repeated
    #[arg(long, value_name = "DIR", requires = "listen")]
    allow_input: Vec<PathBuf>,
    /// With --listen, the bearer token that callers need [default: $REHEARSE_SERVE_TOKEN, else none]
    #[arg(long, value_name = "TOKEN", requires = "listen")]
    token: Option<String>,
    /// With --listen, how many runs there may be at once
    #[arg(long, value_name = "N", requires = "listen", default_value = "8")]
    max_runs: NonZeroUsize,
    /// The `ref` of the model [default: `defaults.model`]
    #[arg(long, value_name = "REF")]
    model: Option<String>,
    /// The file in which all runs are saved, for `rehearse conversation`
    #[arg(long, value_name = "PATH", default_value = FILE_NAME)]
    conversations: PathBuf,
    /// Do not save the runs
    #[arg(long, conflicts_with = "conversations")]
    no_save: bool,
    /// Read the system prompt and look for the model and its key at each call, not at the start
    #[arg(long)]
    lazy_check: bool,
    /// Timeout from the start of a server to the end of its handshake [default: from the config, or 60s]
    #[arg(long, value_name = "TIME", value_parser = duration, hide_short_help = true)]
    start_timeout: Option<Duration>,
    /// Do not print the events of runs and the stderr of servers; the URLs of --listen are printed
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    otlp: OtlpArgs,
    #[command(flatten)]
    routing: RoutingArgs,
}

/// Serves until the client closes the connection or a signal arrives.
///
/// # Errors
/// The config, or a file that it names, is missing or has mistakes; an API key is not set; the address is in use.
pub(super) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let shutdown = CancellationToken::new();
    Ok(Console::run(|console| {
        let of_runs = (!args.quiet).then(|| console.clone());
        let saved = if args.no_save { None } else { save_runs(&args.conversations, console) };
        let mut file = SubagentFile::load(&args.config, args.model.as_deref(), args.lazy_check)?;
        if let Some(limit) = args.start_timeout {
            file.set_start_timeout(limit);
        }
        let spans = args.otlp.exporter()?;
        spans.iter().for_each(|spans| file.set_spans(spans.clone()));
        let exit = block_on_guarded(async {
            let code_mode = file.code_mode(args.model.as_deref()).await?;
            let callers = args.callers()?;
            let subagent = file.subagent(of_runs, saved, code_mode, args.routing.routing(), callers, &shutdown)?;
            serve(args, subagent, console, &shutdown).await
        });
        spans.iter().for_each(SpanExporter::finish);
        exit
    }))
}

impl ServeArgs {
    /// What callers may do: a process that starts this one may do all, callers over the network what the user allows.
    ///
    /// # Errors
    /// A folder of `--allow-input` is not there.
    fn callers(&self) -> Result<Callers, Failure> {
        if self.listen.is_none() {
            return Ok(Callers { inputs: InputSources::Any, max_runs: usize::MAX });
        }
        let folders = self.allow_input.iter().map(|folder| {
            let found = folder.canonicalize().ok().filter(|path| path.is_dir());
            found.ok_or_else(|| Failure::Usage(format!("--allow-input: {} is not a folder", folder.display())))
        });
        Ok(Callers { inputs: InputSources::Folders(folders.collect::<Result<_, _>>()?), max_runs: self.max_runs.get() })
    }

    /// The token that callers over the network need.
    ///
    /// # Errors
    /// It is empty, or not one that fits into a header (RFC 6750, section 2.1).
    fn token(&self) -> Result<Option<String>, Failure> {
        const VARIABLE: &str = "REHEARSE_SERVE_TOKEN";
        let (name, token) = match &self.token {
            Some(token) => ("--token", Some(token.clone())),
            None => (VARIABLE, std::env::var(VARIABLE).ok()),
        };
        let is_valid = |token: &str| {
            !token.is_empty() && token.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._~+/=".contains(&it))
        };
        match token.filter(|_| self.listen.is_some()) {
            Some(token) if !is_valid(&token) => {
                Err(Failure::Usage(format!("{name}: a token is not empty, and has only letters, digits and -._~+/=")))
            }
            token => Ok(token),
        }
    }
}

/// Saves the runs, if the file can be written.
fn save_runs(path: &Path, console: &Console) -> Option<Arc<dyn EventSink>> {
    let console = console.clone();
    let warn = move |error: &StoreError| {
        console.print(format!("warning: failed to save subagent trace: {}\n", printable(&error.to_string())));
    };
    match ConversationStore::open(path) {
        Ok(store) => Some(Arc::new(ConversationSink::of_subagent(store, warn))),
        Err(error) => {
            warn(&error);
            None
        }
    }
}

/// A signal cancels `shutdown`: servers that were started are asked to end at once.
async fn serve(
    args: &ServeArgs,
    subagent: Arc<Subagent>,
    console: &Console,
    shutdown: &CancellationToken,
) -> Result<Exit, Failure> {
    let token = args.token()?;
    let server = match &token {
        Some(token) => subagent.server().set("auth", json!({ "tokens": [{ "token": token }] })),
        None => subagent.server(),
    };
    let engine = server.engine().map_err(Failure::Invalid)?;
    let mut signals = Signals::install()?;
    if args.listen.is_some_and(|address| token.is_none() && !address.ip().is_loopback()) {
        console.print("warning: everyone who can reach this machine can run the subagent; --token requires a token\n");
    }
    let exit = match args.listen {
        Some(address) => listen(address, engine, shutdown, &mut signals, console).await,
        None => {
            console.print(announcement::on_terminal(subagent.name(), &["serve", "--config"], &args.config));
            let pipes = PipeServer::new(engine);
            serve_stdio(&pipes, Duration::ZERO, shutdown, &mut signals, console, std::future::pending()).await
        }
    };
    tokio::select! {
        () = subagent.close() => {}
        _ = signals.next() => {}
    }
    exit
}

async fn listen(
    address: SocketAddr,
    engine: Arc<Engine>,
    shutdown: &CancellationToken,
    signals: &mut Signals,
    console: &Console,
) -> Result<Exit, Failure> {
    let options = ListenOptions { address, ..ListenOptions::default() };
    let server = MockServer::start(engine, options).await;
    let server = server.map_err(|error| Failure::listen(address, "--listen :0", &error))?;
    let urls = Transport::NETWORK.into_iter().filter_map(|it| server.url(it));
    console.print(format!("serving {}\n", urls.collect::<Vec<_>>().join(" ")));
    signals.next().await;
    shutdown.cancel();
    limit_shutdown(SHUTDOWN_LIMIT);
    console.leave_line();
    tokio::select! {
        () = server.stop(GRACE) => {}
        _ = signals.next() => {}
    }
    Ok(Exit::Success)
}
