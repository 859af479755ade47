//! `rehearse check`: a server against the specification.

mod result;
mod rows;

use std::{path::PathBuf, time::Duration};

use clap::Args;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Failure,
    mcp::{
        connection::duration,
        target::{TargetArgs, print_no_servers},
    },
    output,
    process_guard::block_on_guarded,
    signals::Signals,
    style,
};
use rehearse_check::{CheckOptions, ToolPermission, check};
use rehearse_conformance::Row;
use rehearse_protocol::Version;
use rehearse_report::{
    RunFormat,
    check::{CheckResult, RowVerdict},
};

const EXAMPLES: &str = "\
Examples:
  rehearse check --stdio 'node server.js'            a server on stdio
  rehearse check --http http://127.0.0.1:8080/mcp
  rehearse check files --mcp-config .mcp.json        a server of a config
  rehearse check --http URL --allow-tool 'search*'   may also call these tools
  rehearse check --list                              all rows
  rehearse check --explain tools.list.name-charset

The server is checked in every protocol version that it speaks. Tools are called only if they are \
annotated with readOnlyHint, or named by --allow-tool.

Exit codes:
  0  no MUST is violated    1  a MUST is violated, or what --strict and --require say
  2  wrong usage            3  the server cannot be reached; or interrupted
  4  nothing was selected";

/// Check a server against the MCP specification
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// The server of a config [default: all enabled servers]
    server: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
    /// Check only rows whose id matches; `*` stands for any text (repeatable)
    #[arg(long = "only", value_name = "ID")]
    only: Vec<String>,
    /// Check only this protocol version (repeatable)
    #[arg(long = "protocol-version", hide_short_help = true, value_name = "VERSION")]
    versions: Vec<Version>,
    /// Call these tools too; `*` stands for any text (repeatable)
    #[arg(long = "allow-tool", value_name = "NAME")]
    allowed_tools: Vec<String>,
    /// The arguments for a tool (repeatable)
    #[arg(long = "tool-args", hide_short_help = true, value_name = "NAME=JSON", value_parser = tool_args)]
    tool_args: Vec<(String, Value)>,
    /// Also check what directories of servers expect
    #[arg(long, hide_short_help = true)]
    listing: bool,
    /// Fail also if a SHOULD is violated
    #[arg(long)]
    strict: bool,
    /// Fail also if a row that matches was not tested (repeatable)
    #[arg(long = "require", hide_short_help = true, value_name = "ID")]
    required: Vec<String>,
    /// How long the whole run may take
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    budget: Duration,
    /// How long the server may take to start
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    start_timeout: Duration,
    /// How long one request may take
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    /// How long nothing must happen where nothing may happen
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "300ms", value_parser = duration)]
    grace: Duration,
    /// Seed for names and ids
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Report format: human, json or junit
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    format: RunFormat,
    /// Write the report to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the selected rows and exit
    #[arg(long)]
    list: bool,
    /// Explain a row and exit
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    explain: Option<String>,
}

fn tool_args(text: &str) -> Result<(String, Value), String> {
    let (name, json) = text.split_once('=').ok_or("it is not of the form NAME=JSON")?;
    let arguments = serde_json::from_str(json).map_err(|error| format!("the arguments are not JSON: {error}"))?;
    Ok((name.to_owned(), arguments))
}

pub(super) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    if let Some(id) = &args.explain {
        return rows::explain(id).map(|()| Exit::Success);
    }
    let is_selected =
        |row: &Row| args.only.is_empty() || args.only.iter().any(|pattern| rows::matches(pattern, &row.id));
    if !rehearse_conformance::rows().iter().any(is_selected) {
        style::print("no row has such an id; `rehearse check --list` prints all rows\n");
        return Ok(Exit::NothingSelected);
    }
    if args.list {
        return rows::list(is_selected).map(|()| Exit::Success);
    }
    let servers = args.target.selected(args.server.as_deref())?;
    if servers.is_empty() {
        print_no_servers();
        return Ok(Exit::NothingSelected);
    }
    let options = args.options();
    let mut checked = CheckResult { format: 1, seed: args.seed, duration: Duration::ZERO, servers: Vec::new() };
    let is_interrupted = block_on_guarded(async {
        let stop = CancellationToken::new();
        let mut signals =
            Signals::install().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
        for server in &servers {
            let mut params = server.resolved.config.clone();
            params.shutdown = stop.clone();
            let checking = Box::pin(check(&params, &options));
            tokio::select! {
                run = checking => {
                    let mut result = result::server(server, run, is_selected);
                    checked.duration += result.1;
                    server.resolved.secrets.hide_in_check(&mut result.0);
                    checked.servers.push(result.0);
                }
                _ = signals.next() => {
                    stop.cancel();
                    style::print("interrupted\n");
                    return Ok(true);
                }
            }
        }
        Ok(false)
    })?;
    let bytes = checked.render(args.format, style::width(), &again(&servers));
    match (&args.output, args.format) {
        (Some(path), RunFormat::Human) => {
            output::write_file(path, &anstream::adapter::strip_bytes(&bytes).into_vec())?;
        }
        (Some(path), _) => output::write_file(path, &bytes)?,
        (None, RunFormat::Human) => output::write_styled(&bytes)?,
        (None, _) => output::write(&bytes)?,
    }
    Ok(if is_interrupted { Exit::CannotRun } else { args.exit(&checked) })
}

/// The command line that checks the same server again.
fn again(servers: &[super::mcp::target::Server]) -> String {
    match servers {
        [server] if server.is_from_command_line() => format!("rehearse check {}", result::target_flag(server)),
        [server] => format!("rehearse check {}", server.name()),
        _ => "rehearse check".to_owned(),
    }
}

impl CheckArgs {
    fn options(&self) -> CheckOptions {
        CheckOptions {
            versions: self.versions.clone(),
            start_timeout: self.start_timeout,
            request_timeout: self.timeout,
            grace: self.grace,
            budget: self.budget,
            tools: ToolPermission { allowed: self.allowed_tools.clone(), arguments: self.tool_args.clone() },
            listing: self.listing,
            seed: self.seed,
        }
    }

    fn exit(&self, result: &CheckResult) -> Exit {
        let rows = || result.servers.iter().flat_map(|server| &server.versions).flat_map(|version| &version.rows);
        let is_required = |id: &str| self.required.iter().any(|pattern| rows::matches(pattern, id));
        if result.servers.iter().any(|server| server.error.is_some()) {
            Exit::CannotRun
        } else if result.count(RowVerdict::Fail) > 0
            || (self.strict && result.count(RowVerdict::Warn) > 0)
            || rows().any(|row| row.verdict == RowVerdict::NotTested && is_required(&row.id))
        {
            Exit::Violation
        } else {
            Exit::Success
        }
    }
}
