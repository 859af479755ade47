//! `rehearse mcp status`: which servers can be reached, and how many tools they have.

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use super::{
    common::CommonArgs,
    content::{print, print_json},
    table::{status_table, status_table_in, with_offered},
    target::Select,
    trouble::Trouble,
    visit::{Visit, visit},
};
use crate::{
    cli::{Exit, Failure, Format, style::DOUBTFUL},
    client::hub::{State, Status},
    config::policy::{Duplicates, Unreachable},
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp status                            every server of the configs
  rehearse mcp status --mcp-config .mcp.json --timeout 5s --format json

The exit code is 3 if one of the servers cannot be reached. Interrupted, it shows what is known by then.";

/// Connect to every server, and show how it stands with each
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {
    /// The server [default: all]
    server: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let servers = args.common.several(args.server.as_deref().map_or(Select::All, Select::Named))?;
    let all = |options: &mut crate::client::hub::HubOptions| {
        // It is about servers, and what is wrong with one of them is what it shows.
        options.unreachable = Unreachable::Skipped;
        options.duplicates = Duplicates::FirstWins;
    };
    visit(&args.common, &servers, all, async |visit| {
        let mut discovering = std::pin::pin!(visit.hub.discover());
        let found = tokio::select! {
            biased;
            // Before the connections are closed, and with them what is known is gone.
            () = visit.interrupted() => return tell_what_is_known(visit, args.common.format()),
            found = &mut discovering => found.map_err(super::trouble::trouble)?,
        };
        let statuses = with_offered(&visit.hub);
        match args.common.format() {
            Format::Human => {
                visit.warn_unreachable(&found.unreachable);
                visit.warn_unlisted(&found);
                print(&status_table(&statuses, SystemTime::now(), "rehearse mcp "))?;
            }
            Format::Json => {
                let unlisted: HashMap<_, _> =
                    found.unlisted.iter().map(|(server, failure)| (server, failure)).collect();
                let failure = |server: &Arc<str>| unlisted.get(server).map(ToString::to_string);
                print_json(&report(visit, &statuses, state, failure))?;
            }
        }
        Ok(match (found.unreachable.is_empty(), found.unlisted.is_empty()) {
            (false, _) => Exit::CannotRun,
            (true, false) => Exit::Violation,
            (true, true) => Exit::Success,
        })
    })
}

/// How it stood with each server when somebody had seen enough.
fn tell_what_is_known(visit: &Visit, format: Format) -> Result<Exit, Trouble> {
    // Of two tools with one name the first counts here.
    let _ = visit.hub.register();
    let statuses = with_offered(&visit.hub);
    match format {
        Format::Human => {
            for (server, status) in &statuses {
                if let Some(error) = status.last_error.as_ref().filter(|_| status.state == State::Failed) {
                    let text = format!("MCP server '{server}' connection failed: {error}");
                    visit.say_in_any_case(&format!("{DOUBTFUL}WARN:{DOUBTFUL:#}"), &text);
                }
            }
            let word = |state: State| match state {
                State::NotConnected => "Not asked".to_owned(),
                State::Connecting => "Interrupted".to_owned(),
                state => state.to_string(),
            };
            print(&status_table_in(&statuses, SystemTime::now(), "rehearse mcp ", word))?;
        }
        Format::Json => {
            let word = |it: State| match it {
                State::NotConnected => "notAsked",
                State::Connecting => "interrupted",
                it => state(it),
            };
            print_json(&report(visit, &statuses, word, |_| None))?;
        }
    }
    Ok(Exit::CannotRun)
}

/// What programs are told.
fn report(
    visit: &Visit,
    statuses: &[(Arc<str>, Status)],
    word: impl Fn(State) -> &'static str,
    failure: impl Fn(&Arc<str>) -> Option<String>,
) -> Value {
    let server = |(name, status): &(Arc<str>, Status)| {
        let error = status.last_error.as_ref().map(ToString::to_string).or_else(|| failure(name));
        json!({
            "server": name,
            "status": word(status.state),
            "tools": status.tools,
            "since": humantime::format_rfc3339_millis(status.since).to_string(),
            "error": error.map(|error| visit.hidden(&error)),
        })
    };
    json!({ "servers": statuses.iter().map(server).collect::<Vec<_>>() })
}

/// One word for programs.
fn state(state: State) -> &'static str {
    match state {
        State::NotConnected => "notConnected",
        State::Connecting => "connecting",
        State::Connected => "connected",
        State::Failed => "failed",
        State::Disabled => "disabled",
    }
}
