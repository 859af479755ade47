//! `rehearse serve`: the subagent of a config as an MCP server.

mod events;
mod subagent_config;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rehearse_protocol::Transport;
use tokio_util::sync::CancellationToken;

use self::subagent_config::SubagentFile;
use super::{
    Exit, Failure,
    mock::{
        console::Console,
        parse_address,
        server::{listen_failure, runtime_failure},
        stdio,
    },
    process_guard::block_on_guarded,
    signals::{Signals, limit_shutdown},
    style::printable,
};
use rehearse_agent::{
    EventSink, Subagent,
    store::{ConversationSink, ConversationStore, FILE_NAME, StoreError},
};
use rehearse_mock::{
    engine::Engine,
    serve::{ListenOptions, MockServer, PipeEnd, serve_pipe},
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
/// When the process ends after a signal, even if something hangs.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(15);
/// How long printing the rest of stderr may take.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

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
    /// The `ref` of the model [default: `defaults.model`]
    #[arg(long, value_name = "REF")]
    model: Option<String>,
    /// The file in which all runs are saved, for `rehearse conversation`
    #[arg(long, value_name = "PATH", default_value = FILE_NAME)]
    conversations: PathBuf,
    /// Do not save the runs
    #[arg(long, conflicts_with = "conversations")]
    no_save: bool,
    /// Do not print the events of runs and the stderr of servers
    #[arg(short, long)]
    quiet: bool,
}

/// Serves until the client closes the connection or a signal arrives.
///
/// # Errors
/// The config, or a file that it names, is missing or has mistakes; an API key is not set; the address is in use.
pub(super) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let (console, printer) = Console::open();
    let shutdown = CancellationToken::new();
    let console_of_runs = (!args.quiet).then(|| console.clone());
    let saved = if args.no_save { None } else { save_runs(&args.conversations, &console) };
    let exit = SubagentFile::load(&args.config, args.model.as_deref()).and_then(|file| {
        block_on_guarded(async {
            let code_mode = file.code_mode(args.model.as_deref()).await?;
            let subagent = file.subagent(console_of_runs, saved, code_mode, &shutdown)?;
            serve(args, subagent, &console).await
        })
    });
    let exit = exit.unwrap_or_else(|failure| {
        console.print(failure.text());
        failure.exit()
    });
    drop(console);
    printer.join_timeout(STDERR_TIMEOUT);
    Ok(exit)
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

async fn serve(args: &ServeArgs, subagent: Arc<Subagent>, console: &Console) -> Result<Exit, Failure> {
    let engine = subagent.server().engine().map_err(Failure::Invalid)?;
    let mut signals = Signals::install().map_err(runtime_failure)?;
    let exit = match args.listen {
        Some(address) => listen(address, engine, &mut signals, console).await,
        None => pipe(engine, &mut signals, console).await,
    };
    tokio::select! {
        () = subagent.close() => {}
        _ = signals.next() => {}
    }
    exit
}

async fn pipe(engine: Arc<Engine>, signals: &mut Signals, console: &Console) -> Result<Exit, Failure> {
    let stop = CancellationToken::new();
    let (mut input, mut output) = (stdio::Input::open(), stdio::Output::open());
    let stopped = async {
        signals.next().await;
        limit_shutdown(SHUTDOWN_LIMIT);
        console.leave_line();
        stop.cancel();
        signals.next().await;
    };
    let ended = tokio::select! {
        ended = serve_pipe(engine, Transport::Stdio, &mut input, &mut output, stop.clone(), Duration::ZERO) => ended,
        () = stdio::stdout_closed() => Ok(PipeEnd::Closed),
        () = stopped => Ok(PipeEnd::Stopped),
    };
    input.restore();
    output.restore();
    match ended {
        Ok(_) => Ok(Exit::Success),
        Err(error) => Err(Failure::cannot(format!("cannot read stdin: {error}"))),
    }
}

async fn listen(
    address: SocketAddr,
    engine: Arc<Engine>,
    signals: &mut Signals,
    console: &Console,
) -> Result<Exit, Failure> {
    let options = ListenOptions { address, ..ListenOptions::default() };
    let server = MockServer::start(engine, options).await;
    let server = server.map_err(|error| listen_failure(address, "--listen :0", &error))?;
    let urls = [Transport::Http, Transport::Sse, Transport::Ws].into_iter().filter_map(|it| server.url(it));
    console.print(format!("serving {}\n", urls.collect::<Vec<_>>().join(" ")));
    signals.next().await;
    limit_shutdown(SHUTDOWN_LIMIT);
    console.leave_line();
    tokio::select! {
        () = server.stop(GRACE) => {}
        _ = signals.next() => {}
    }
    Ok(Exit::Success)
}
