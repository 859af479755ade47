//! `rehearse check gateway`: what is between clients and a server, seen from both sides.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{
    progress::{INTERRUPTED, Progress},
    report_args::ReportArgs,
};
use crate::cli::{
    Exit, Failure,
    job::{INTERRUPTED_AGAIN, Job},
    mcp::target::connection::duration,
    mock::parse_address,
    process_guard::{block_on_guarded, program},
    repository::NO_PLACE,
    secrets::Secrets,
    usage_hint::quoted_command,
};
use rehearse_check::gateway::{GatewayError, GatewayOptions, check_gateway};
use rehearse_conformance::Role;
use rehearse_protocol::{Transport, Version};
use rehearse_report::{Format, check::CheckedServer};
use rehearse_system::program::quoted;

/// The address of the upstream, if none is given.
const FREE_PORT: &str = "127.0.0.1:0";

macro_rules! examples {
    () => {
        "\
Examples:
  rehearse check gateway -- npx mcp-remote {upstream_url}
  rehearse check gateway --at 'http://127.0.0.1:{port}/mcp' -- mcp-proxy --port {port} -- {upstream_command}
  rehearse check gateway --at 'http://127.0.0.1:{port}/mcp' -- npx supergateway --port {port} \\
      --outputTransport streamableHttp --stdio {upstream_line}
  rehearse check gateway --at http://127.0.0.1:9000/mcp --upstream 127.0.0.1:8001"
    };
}

const LONG_EXAMPLES: &str = concat!(
    examples!(),
    "

The gateway is started between a client and a mock of ours, once in each era of MCP. What went in on one side is \
compared with what came out on the other: lists, arguments, results, errors, progress, cancellation, questions to the \
client. A gateway that is asked for nothing else passes all of it on as it came.

In the arguments, {upstream_url} and {upstream_sse_url} stand for the URLs of the mock, {upstream_command} for the words \
of a command that serves it on stdio, {upstream_line} for that command as one word, {upstream_config} for a config file \
with the URL, and {port} for a free port. The same is in REHEARSE_URL, REHEARSE_SSE_URL, REHEARSE_STDIO and \
REHEARSE_CONFIG. Without --at the gateway is a server on stdio.

What the gateway changes on purpose: --baseline FILE --update-baseline writes it down, and later runs hold it.

Exit codes:
  0  nothing was changed    1  something was changed, or a MUST is violated
  2  wrong usage            3  the gateway cannot be started; or interrupted
  4  nothing was tested"
);

/// Check a gateway, proxy or bridge from both sides
#[derive(Debug, Args)]
#[command(after_help = examples!(), after_long_help = LONG_EXAMPLES)]
pub(super) struct GatewayArgs {
    /// The URL of its clients; {port} stands for a free port
    #[arg(long, value_name = "URL")]
    at: Option<String>,
    /// Its clients use HTTP+SSE, or a WebSocket
    #[arg(long, value_name = "TRANSPORT", requires = "at", default_value = "http", value_parser = ["http", "sse", "ws"])]
    transport: String,
    /// Serve the upstream at this address, for a gateway that you start [default: a free port]
    #[arg(long, value_name = "ADDR", value_parser = parse_address, default_value = FREE_PORT, hide_default_value = true)]
    upstream: SocketAddr,
    /// The bearer token of its clients
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Check only this version (repeatable) [default: the newest of each era]
    #[arg(long = "protocol", value_name = "VERSION", hide_short_help = true)]
    versions: Vec<Version>,
    /// How long the gateway may take to start
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "30s", value_parser = duration)]
    start_timeout: Duration,
    /// How long one request may take
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    /// How long the gateway may take to send something on
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "2s", value_parser = duration)]
    grace: Duration,
    /// Also count violations that come from an SDK
    #[arg(long, hide_short_help = true)]
    sdk: bool,
    #[command(flatten)]
    report: ReportArgs,
    /// The command that starts the gateway
    #[arg(value_name = "COMMAND", last = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

pub(super) fn run(args: &GatewayArgs) -> Result<Exit, Failure> {
    let report = &args.report;
    if let Some(exit) = report.list(Role::Gateway)? {
        return Ok(exit);
    }
    if args.command.is_empty() && args.at.is_none() {
        let message = "which gateway? give its command after `--`, or its URL with --at: \
                       rehearse check gateway -- npx mcp-remote {upstream_url}";
        return Err(Failure::Usage(message.to_owned()));
    }
    let words: Vec<std::ffi::OsString> = args.command.iter().map(Into::into).collect();
    if let Some(wrong) = quoted_command(&words) {
        return Err(Failure::Usage(wrong));
    }
    if report.output.format == Format::Sarif {
        return Err(Failure::Usage(NO_PLACE.to_owned()));
    }
    let baseline = report.read_baseline()?;
    let mut checked = report.begin();
    // What changes on the way is what the command is about, whatever level the rule has.
    checked.strict = true;
    let begun = std::time::Instant::now();
    let (servers, is_interrupted) = block_on_guarded(args.check())?;
    checked.duration = begun.elapsed();
    checked.servers = servers;
    report.conclude(&mut checked, baseline, args.versions.is_empty(), is_interrupted)?;
    report.write(checked)
}

impl GatewayArgs {
    /// Checks the gateway. Returns the results, and whether it was interrupted.
    ///
    /// # Errors
    /// The gateway or the mock cannot be started.
    async fn check(&self) -> Result<(Vec<CheckedServer>, bool), Failure> {
        let shutdown = CancellationToken::new();
        let mut job = Job::start(shutdown.clone(), INTERRUPTED)?;
        let options = GatewayOptions {
            command: self.command.clone(),
            at: self.at.clone(),
            over: self.transport.parse().unwrap_or(Transport::Http),
            upstream: self.upstream,
            token: self.token.clone(),
            versions: self.versions.clone(),
            start_timeout: self.start_timeout,
            timeout: self.timeout,
            grace: self.grace,
            program: Some(program()?),
            seed: self.report.seed,
            checks: self.report.only.clone(),
            counts_sdk: self.sdk,
            shutdown,
        };
        let _ = Secrets::new(self.token.clone().into_iter().collect()).remembered();
        let mut progress = Progress::new();
        progress.begin(&options.target(), 0, 1);
        let lines = async {
            loop {
                progress.next_line().await;
            }
        };
        let Some(run) = job.run_with(Box::pin(check_gateway(&options)), lines).await else {
            return Err(Failure::cannot(INTERRUPTED_AGAIN));
        };
        let mut servers = run.map_err(|error| match error {
            GatewayError::Placeholder(_) => Failure::Usage(error.to_string()),
            error => Failure::cannot(error.to_string()),
        })?;
        let command =
            (!self.command.is_empty()).then(|| self.command.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "));
        let at = self.at.as_ref().map(|url| format!(" --at {}", quoted(url))).unwrap_or_default();
        for server in &mut servers {
            server.again = format!("rehearse check gateway{at}{}", if self.sdk { " --sdk" } else { "" });
            server.command.clone_from(&command);
        }
        Ok((servers, job.is_interrupted()))
    }
}
