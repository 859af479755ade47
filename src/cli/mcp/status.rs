//! `rehearse mcp status`: the connection state of each server, and how many tools, resources and prompts it has.

use std::{
    collections::HashMap,
    io::IsTerminal,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    args::CommonArgs,
    error::CommandError,
    print::{
        print, print_json,
        table::{callable_statuses, list_items, status_table, status_table_in},
    },
    session::{HubSession, run_with_user},
    target::{Select, connection::duration},
};
use crate::cli::{Exit, Failure, Format, style::DOUBTFUL};
use rehearse_client_configs::policy::{Duplicates, Unreachable};
use rehearse_hub::{ConnectionState, Hub, ServerStatus};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp status                            every configured server
  rehearse mcp status --mcp-config .mcp.json --timeout 5s --format json
  rehearse mcp status --watch                    a table that follows the servers

The exit code is 3 if a server cannot be reached. Ctrl-C prints the state so far.";

/// Show the connection state of each server, and how many items it lists
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// The server [default: all]
    server: Option<String>,
    /// Print the table again when it changes, until Ctrl-C; ask the servers at this interval [default: 5s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "5s")]
    #[arg(value_parser = duration, conflicts_with_all = ["format", "json"])]
    watch: Option<Duration>,
    #[command(flatten)]
    common: CommonArgs,
}

pub(crate) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let servers = args.common.several(args.server.as_deref().map_or(Select::All, Select::Named))?;
    let all = |options: &mut rehearse_hub::HubOptions| {
        // Unreachable servers and duplicates are part of the result.
        options.unreachable = Unreachable::Skipped;
        if options.duplicates == Duplicates::Rejected {
            options.duplicates = Duplicates::FirstWins;
        }
        if args.watch.is_some() {
            (options.health_interval, options.watch_changes) = (args.watch, true);
        }
    };
    run_with_user(None, &args.common, &servers, all, async |hub_session| {
        let mut discovering = std::pin::pin!(hub_session.hub.discover());
        let found = tokio::select! {
            biased;
            // Print the status before the connections are closed.
            () = hub_session.interrupted() => return print_partial_status(hub_session, args.common.format()),
            found = &mut discovering => found.map_err(CommandError::from)?,
        };
        tokio::select! {
            biased;
            () = hub_session.interrupted() => return print_partial_status(hub_session, args.common.format()),
            () = list_items(&hub_session.hub) => {}
        }
        if let Some(interval) = args.watch {
            return watch(hub_session, interval).await;
        }
        let statuses = callable_statuses(&hub_session.hub);
        match args.common.format() {
            Format::Human => {
                hub_session.warn_unreachable(&found.unreachable);
                hub_session.warn_incomplete(&found);
                print(&status_table(&statuses, SystemTime::now(), "rehearse mcp "))?;
            }
            Format::Json => {
                let unlisted: HashMap<_, _> =
                    found.incomplete.iter().map(|(server, failure)| (server, failure)).collect();
                let failure = |server: &Arc<str>| unlisted.get(server).map(ToString::to_string);
                print_json(&report(hub_session, &statuses, state, failure))?;
            }
        }
        Ok(match (found.unreachable.is_empty(), found.incomplete.is_empty()) {
            (false, _) => Exit::CannotRun,
            (true, false) => Exit::Violation,
            (true, true) => Exit::Success,
        })
    })
}

/// Prints the table when it changes, on a terminal in place, and reconnects lost servers, until an interruption.
async fn watch(hub_session: &HubSession, interval: Duration) -> Result<Exit, CommandError> {
    let (hub, mut events, mut before) = (&hub_session.hub, hub_session.hub.events(), None);
    let is_terminal = std::io::stdout().is_terminal();
    // An event does not end it: a connection has events before its tools are listed.
    let mut asking = std::pin::pin!(ask_again(hub, interval));
    loop {
        let statuses = callable_statuses(hub);
        let counts = |status: &ServerStatus| (status.tools, status.resources, status.prompts);
        let now: Vec<_> = statuses.iter().map(|(_, status)| (status.state, counts(status))).collect();
        let has_changed = before.replace(now.clone()) != Some(now);
        if is_terminal || has_changed {
            let clear = if is_terminal { "\x1b[H\x1b[2J" } else { "" };
            print(&format!("{clear}{}", status_table(&statuses, SystemTime::now(), "rehearse mcp ")))?;
        }
        tokio::select! {
            biased;
            () = hub_session.interrupted() => return Ok(Exit::Success),
            _ = events.recv() => {}
            () = &mut asking => asking.set(ask_again(hub, interval)),
        }
    }
}

/// After a pause, connects to lost servers and asks all for their items.
async fn ask_again(hub: &Hub, pause: Duration) {
    tokio::time::sleep(pause).await;
    let statuses = hub.status();
    let lost = statuses.iter().filter(|(_, status)| status.state == ConnectionState::Failed);
    // The table says who cannot be reached.
    join_all(lost.map(|(name, _)| hub.connect(name))).await;
    list_items(hub).await;
}

/// Prints the status of each server at the time of an interruption.
fn print_partial_status(hub_session: &HubSession, format: Format) -> Result<Exit, CommandError> {
    // The policy rejects no duplicate.
    let _ = hub_session.hub.register();
    let statuses = callable_statuses(&hub_session.hub);
    match format {
        Format::Human => {
            for (server, status) in &statuses {
                if let Some(error) = status.last_error.as_ref().filter(|_| status.state == ConnectionState::Failed) {
                    let text = format!("MCP server '{server}' connection failed: {error}");
                    hub_session.print_always(&format!("{DOUBTFUL}warning:{DOUBTFUL:#}"), &text);
                }
            }
            let word = |state: ConnectionState| match state {
                ConnectionState::NotConnected => "Not asked".to_owned(),
                ConnectionState::Connecting => "Interrupted".to_owned(),
                state => state.to_string(),
            };
            print(&status_table_in(&statuses, SystemTime::now(), "rehearse mcp ", word))?;
        }
        Format::Json => {
            let word = |it: ConnectionState| match it {
                ConnectionState::NotConnected => "notAsked",
                ConnectionState::Connecting => "interrupted",
                it => state(it),
            };
            print_json(&report(hub_session, &statuses, word, |_| None))?;
        }
    }
    Ok(Exit::CannotRun)
}

/// The report as JSON.
fn report(
    hub_session: &HubSession,
    statuses: &[(Arc<str>, ServerStatus)],
    word: impl Fn(ConnectionState) -> &'static str,
    failure: impl Fn(&Arc<str>) -> Option<String>,
) -> Value {
    let server = |(name, status): &(Arc<str>, ServerStatus)| {
        let error = status.last_error.as_ref().map(ToString::to_string).or_else(|| failure(name));
        json!({
            "server": name,
            "status": word(status.state),
            "tools": status.tools,
            "resources": status.resources,
            "prompts": status.prompts,
            "since": humantime::format_rfc3339_millis(status.since).to_string(),
            "error": error.map(|error| hub_session.hidden(&error)),
        })
    };
    json!({ "servers": statuses.iter().map(server).collect::<Vec<_>>() })
}

/// The name of a state in JSON.
fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::NotConnected => "notConnected",
        ConnectionState::Connecting => "connecting",
        ConnectionState::Connected => "connected",
        ConnectionState::Failed => "failed",
        ConnectionState::Disabled => "disabled",
    }
}
