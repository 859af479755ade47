//! `rehearse mcp ping`: the response time of servers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    args::CommonArgs,
    error::FailureReport,
    print::{print, print_json},
    session::{ServerResult, ServerResults, run_with_user},
    target::{Select, connection::UnreachableArgs},
};
use crate::cli::{
    Exit, Failure, Format,
    style::{BAD, GOOD, STRONG, printable},
};
use rehearse_client::{self as client, CallOptions, Session};
use rehearse_protocol::Era;

const EXAMPLES: &str = "\
Examples:
  rehearse mcp ping files
  rehearse mcp ping --http http://127.0.0.1:8888/mcp --timeout 2s
  rehearse mcp ping                              every configured server

Version 2026-07-28 has no ping; `server/discover` is used instead.";

/// Ping servers
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PingArgs {
    /// The server [default: all enabled servers]
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    unreachable: UnreachableArgs,
}

/// The response to a ping.
struct Pong {
    method: &'static str,
    after: Duration,
}

/// The results as JSON.
#[derive(Serialize)]
struct Report {
    servers: Vec<ServerReport>,
}

#[derive(Serialize)]
struct ServerReport {
    server: Arc<str>,
    #[serde(flatten)]
    result: PingOutcome,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PingOutcome {
    Pong { method: &'static str, milliseconds: f64 },
    Failure { failure: FailureReport },
    Unreachable { unreachable: String },
}

pub(crate) fn run(args: &PingArgs) -> Result<Exit, Failure> {
    let servers = args.common.several(Select::from_name(args.server.as_deref()))?;
    run_with_user(
        None,
        &args.common,
        &servers,
        |options| args.unreachable.apply(options),
        async |hub_session| {
            let ServerResults { reached, outcome } =
                hub_session.each(async |session, options| ping(session, options).await).await?;
            let milliseconds = |after: Duration| (after.as_secs_f64() * 10_000.0).round() / 10.0;
            let mut exit = Exit::Success;
            for (_, result) in &reached {
                exit = match result {
                    ServerResult::Unreachable(_) => Exit::CannotRun,
                    ServerResult::Answered(Err(_)) if exit == Exit::Success => Exit::Violation,
                    ServerResult::Answered(_) => exit,
                };
            }
            match args.common.format() {
                Format::Human => {
                    let line = |(server, result): &(Arc<str>, ServerResult<Pong>)| {
                        let server = printable(server);
                        match result {
                            ServerResult::Answered(Ok(Pong { method, after })) => {
                                let time = milliseconds(*after);
                                Some(format!(
                                    "{GOOD}✓{GOOD:#} {STRONG}{server}{STRONG:#} answered {method} in {time} ms\n"
                                ))
                            }
                            ServerResult::Answered(Err(failure)) => {
                                let why = hub_session.hidden(&format!("{}: {failure}", failure.kind()));
                                Some(format!("{BAD}✗{BAD:#} {STRONG}{server}{STRONG:#} {}\n", printable(&why)))
                            }
                            // A warning was printed already.
                            ServerResult::Unreachable(_) => None,
                        }
                    };
                    print(&reached.iter().filter_map(line).collect::<String>())?;
                }
                Format::Json => {
                    let server = |(server, result): &(Arc<str>, ServerResult<Pong>)| {
                        let result = match result {
                            ServerResult::Answered(Ok(Pong { method, after })) => {
                                PingOutcome::Pong { method, milliseconds: milliseconds(*after) }
                            }
                            ServerResult::Answered(Err(failure)) => {
                                PingOutcome::Failure { failure: hub_session.failure_json(failure) }
                            }
                            ServerResult::Unreachable(error) => {
                                PingOutcome::Unreachable { unreachable: hub_session.hidden(&error.to_string()) }
                            }
                        };
                        ServerReport { server: server.clone(), result }
                    };
                    print_json(&Report { servers: reached.iter().map(server).collect() })?;
                }
            }
            outcome?;
            Ok(exit)
        },
    )
}

async fn ping(session: &Session, options: CallOptions) -> Result<Pong, client::Failure> {
    let method = match session.info().version.era() {
        Era::Legacy => "ping",
        Era::Modern => "server/discover",
    };
    let started = Instant::now();
    session.request(method, None, options).await?;
    Ok(Pong { method, after: started.elapsed() })
}
