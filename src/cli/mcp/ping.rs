//! `rehearse mcp ping`: whether servers answer, and how fast.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    common::CommonArgs,
    connection::UnreachableArgs,
    content::{print, print_json},
    target::Select,
    visit::{Reached, visit},
};
use crate::{
    cli::{
        Exit, Failure, Format,
        style::{BAD, GOOD, STRONG, printable},
    },
    client::{self, CallOptions, Session},
    wire::Era,
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp ping files
  rehearse mcp ping --http http://127.0.0.1:8888/mcp --timeout 2s
  rehearse mcp ping                              every server of the configs

Version 2026-07-28 has no ping; its servers are asked for `server/discover` instead.";

/// Ask servers for a sign of life
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PingArgs {
    /// The server [default: all that are not disabled]
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    unreachable: UnreachableArgs,
}

/// A sign of life.
struct Pong {
    method: &'static str,
    after: Duration,
}

pub(super) fn run(args: &PingArgs) -> Result<Exit, Failure> {
    let servers = args.common.servers(Select::of(args.server.as_deref()))?;
    visit(
        &args.common.connection,
        &servers,
        |options| args.unreachable.apply(options),
        async |visit| {
            let reached = visit.each(async |session, options| ping(session, options).await).await?;
            let milliseconds = |after: Duration| (after.as_secs_f64() * 10_000.0).round() / 10.0;
            let mut exit = Exit::Success;
            for (_, came) in &reached {
                exit = match came {
                    Reached::Not(_) => Exit::CannotRun,
                    Reached::Answered(Err(_)) if exit == Exit::Success => Exit::Violation,
                    Reached::Answered(_) => exit,
                };
            }
            match args.common.format {
                Format::Human => {
                    let line = |(server, came): &(std::sync::Arc<str>, Reached<Pong>)| {
                        let server = printable(server);
                        match came {
                            Reached::Answered(Ok(Pong { method, after })) => {
                                let time = milliseconds(*after);
                                Some(format!(
                                    "{GOOD}✓{GOOD:#} {STRONG}{server}{STRONG:#} answered {method} after {time} ms\n"
                                ))
                            }
                            Reached::Answered(Err(failure)) => {
                                let why = visit.hidden(&format!("{}: {failure}", failure.kind()));
                                Some(format!("{BAD}✗{BAD:#} {STRONG}{server}{STRONG:#} {}\n", printable(&why)))
                            }
                            // It has been told.
                            Reached::Not(_) => None,
                        }
                    };
                    print(&reached.iter().filter_map(line).collect::<String>())?;
                }
                Format::Json => {
                    let server = |(server, came): &(std::sync::Arc<str>, Reached<Pong>)| -> Value {
                        match came {
                            Reached::Answered(Ok(Pong { method, after })) => {
                                json!({ "server": server, "method": method, "milliseconds": milliseconds(*after) })
                            }
                            Reached::Answered(Err(failure)) => {
                                json!({ "server": server, "failure": visit.failure_json(failure) })
                            }
                            Reached::Not(error) => {
                                json!({ "server": server, "unreachable": visit.hidden(&error.to_string()) })
                            }
                        }
                    };
                    print_json(&json!({ "servers": reached.iter().map(server).collect::<Vec<_>>() }))?;
                }
            }
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
