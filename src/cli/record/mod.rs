//! `rehearse record`: stands between a client and a server, and writes what passes.

mod http;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::{
    Exit, Failure,
    mock::{
        parse_address,
        stdio::{Input, Output},
    },
    process_guard::block_on_guarded,
    secrets::Secrets,
    signals::Signals,
    style::{self, printable},
    trace_file::TraceFileWriter,
};
use rehearse_client::{CommandSpec, ServerParams, StderrLine, Target, TraceRecorder, Wire};
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::{Direction, EventKind, Transport, trace_file::ConnectionInfo};

/// How many events a recorder keeps; the file has them all.
const KEPT_EVENTS: usize = 64;
/// How long the client may take to read the last messages.
const LAST_MESSAGES: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  rehearse record --trace-file /tmp/files.jsonl -- npx -y mcp-files /data
  rehearse record --trace-file web.jsonl --listen 8888 --to https://example.com/mcp
  rehearse mock --from-trace web.jsonl > mock.yaml   a mock that answers as the server did
  rehearse check --trace web.jsonl                   check what was recorded

In the configuration of a client, the recorder takes the place of the server:
  \"command\": \"rehearse\", \"args\": [\"record\", \"--trace-file\", \"/tmp/t.jsonl\", \"--\", \"npx\", …]

The file is appended to, so that it has all sessions of a client.";

/// Record the traffic between a client and a server
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RecordArgs {
    /// Append all traffic to this file as it happens
    #[arg(long, value_name = "FILE")]
    trace_file: PathBuf,
    /// Listen on this address or port for a client over HTTP
    #[arg(long, value_name = "ADDR", value_parser = parse_address, requires = "to")]
    listen: Option<SocketAddr>,
    /// The URL of the server: streamable HTTP
    #[arg(long, value_name = "URL", requires = "listen")]
    to: Option<String>,
    /// Keep tokens and passwords
    #[arg(long)]
    show_secrets: bool,
    /// The command of a server on stdio, with its arguments
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "to", conflicts_with = "to")]
    command: Vec<String>,
}

pub(super) fn run(args: &RecordArgs) -> Result<Exit, Failure> {
    let file = TraceFileWriter::append(&args.trace_file)?;
    let exit = block_on_guarded(async {
        match (args.listen, &args.to) {
            (Some(address), Some(url)) => http::serve(address, url, &file, args.show_secrets).await,
            _ => relay(args, &file).await,
        }
    })?;
    file.check().map(|()| exit)
}

/// Relays the lines of standard input and output until either side ends.
async fn relay(args: &RecordArgs, file: &TraceFileWriter) -> Result<Exit, Failure> {
    let mut signals = Signals::install().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
    let mut words = args.command.iter().cloned();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let target = Target::Stdio(CommandSpec { program, args: words.collect(), ..CommandSpec::default() });
    let secrets = (!args.show_secrets).then(|| Secrets::from_target(&target));
    let write = file.connection(&ConnectionInfo::new(name.clone(), Transport::Stdio), secrets);
    let recorder = TraceRecorder::with_limit(KEPT_EVENTS);
    let (lines, queue) = mpsc::unbounded_channel();
    recorder.set_sink(Box::new(move |event| {
        write(event);
        let line = match &event.kind {
            EventKind::Frame(frame) if frame.direction == Direction::ServerToClient => Some(frame.bytes.clone()),
            EventKind::Closed(_) => None,
            _ => return,
        };
        let _ = lines.send(line);
    }));
    let stderr = |StderrLine { line, .. }: StderrLine| style::print(&format!("{}\n", printable(&line)));
    let params = ServerParams::new(name, target);
    let wire = Wire::open(&params, Some(std::sync::Arc::new(stderr)), recorder.clone()).await;
    let wire = wire.map_err(|error| Failure::cannot(error.to_string()))?;
    let writing = tokio::spawn(write_lines(queue));
    tokio::select! {
        () = send_lines(&wire) => {}
        () = ended(&recorder) => {}
        _ = signals.next() => params.shutdown.cancel(),
    }
    let status = wire.close().await;
    let _ = tokio::time::timeout(LAST_MESSAGES, writing).await;
    Ok(match status.and_then(|status| status.code()) {
        Some(0) => Exit::Success,
        Some(code) => Exit::Scripted(u8::try_from(code).unwrap_or(1)),
        None => Exit::CannotRun,
    })
}

/// Sends the lines of standard input to the server, until the client closes it.
async fn send_lines(wire: &Wire) {
    let mut input = LineReader::new(Input::open());
    while let Ok(Some(line)) = input.next().await {
        // A line that is too long for a trace is too long for the relay.
        let Ok(line) = line else { continue };
        if wire.send(None, line).await.is_err() {
            return;
        }
    }
}

/// Writes what the server sends, until it sends no more.
async fn write_lines(mut queue: mpsc::UnboundedReceiver<Option<Bytes>>) {
    let mut output = LineWriter::new(Output::open());
    while let Some(Some(line)) = queue.recv().await {
        if output.write(&line).await.is_err() {
            return;
        }
    }
}

/// Waits for the end of a connection.
async fn ended(recorder: &TraceRecorder) {
    while recorder.has_more(recorder.end()).await {}
}
