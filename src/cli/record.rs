//! `rehearse record`: stands between a client and a server, and writes what passes.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use super::{
    Exit, Failure,
    mock::parse_address,
    output,
    process_guard::block_on_guarded,
    secrets::Secrets,
    signals::Signals,
    sinks::Sinks,
    spans::{OtlpArgs, SpanExporter},
    style::{self, printable},
    trace_file::TraceFileWriter,
    usage_hint::quoted_command,
};
use rehearse_client::{CommandSpec, Endpoint, EventSink, ServerParams, StderrLine, Target};
use rehearse_protocol::{Transport, trace_file::ConnectionInfo};
use rehearse_relay::{HttpRelay, RelayError, relay_lines};
use rehearse_system::{
    program,
    stdio::{Input, Output},
};

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
    #[command(flatten)]
    otlp: OtlpArgs,
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
    if let Some(wrong) = quoted_command(&args.command) {
        return Err(Failure::Usage(wrong));
    }
    let file = TraceFileWriter::append(&args.trace_file)?;
    let sinks = Sinks { file: Some(file.clone()), spans: args.otlp.exporter()? };
    let done = block_on_guarded(async {
        let signals = Signals::install()?;
        match (args.listen, &args.to) {
            (Some(address), Some(url)) => args.relay_http(address, url, (&file, &sinks), signals).await,
            _ => args.relay_stdio((&file, &sinks), signals).await,
        }
    });
    sinks.spans.iter().for_each(SpanExporter::finish);
    done
}

impl RecordArgs {
    fn secrets(&self, target: &Target) -> Option<Secrets> {
        (!self.show_secrets).then(|| Secrets::from_target(target))
    }

    /// Serves until a signal arrives.
    async fn relay_http(
        &self,
        address: SocketAddr,
        url: &str,
        (file, sinks): (&TraceFileWriter, &Sinks),
        mut signals: Signals,
    ) -> Result<Exit, Failure> {
        let secrets = self.secrets(&Target::Http(Endpoint { url: url.to_owned(), headers: Vec::new() }));
        let sinks = sinks.clone();
        let sinks = Arc::new(move |info: &ConnectionInfo| -> Box<dyn EventSink> {
            sinks.connection(info, secrets.clone(), true)
        });
        let relay = HttpRelay::start(address, url, Transport::Http, sinks).await.map_err(|error| match error {
            RelayError::Listen { .. } => Failure::cannot(error.to_string()),
            error => Failure::Usage(error.to_string()),
        })?;
        style::print(&format!("{} is recorded at {}\n", printable(relay.server()), relay.url()));
        signals.next().await;
        relay.stop().await;
        file.check_soon().map(|()| Exit::Success)
    }

    /// Relays the lines of standard input and output until either side ends, or a signal arrives.
    async fn relay_stdio(
        &self,
        (file, sinks): (&TraceFileWriter, &Sinks),
        mut signals: Signals,
    ) -> Result<Exit, Failure> {
        let mut words = self.command.iter().cloned();
        let program = words.next().unwrap_or_default();
        let name = program::name(&program).to_owned();
        let target = Target::Stdio(CommandSpec { program, args: words.collect(), ..CommandSpec::default() });
        let info = ConnectionInfo::new(name.clone(), Transport::Stdio);
        let sink = sinks.connection(&info, self.secrets(&target), true);
        let stderr = |StderrLine { line, .. }: StderrLine| style::print(&format!("{}\n", printable(&line)));
        let params = ServerParams::new(name, target);
        let relaying = relay_lines(&params, sink, Arc::new(stderr), Input::open(), Output::open(output::remember));
        tokio::pin!(relaying);
        let status = loop {
            tokio::select! {
                status = &mut relaying => break status.map_err(|error| Failure::cannot(error.to_string()))?,
                _ = signals.next() => params.shutdown.cancel(),
            }
        };
        if params.shutdown.is_cancelled() { file.check_soon() } else { file.check() }?;
        Ok(match status.and_then(|status| status.code()) {
            Some(0) => Exit::Success,
            Some(code) => Exit::Scripted(u8::try_from(code).unwrap_or(1)),
            None => Exit::CannotRun,
        })
    }
}
