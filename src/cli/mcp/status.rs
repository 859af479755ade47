//! `rehearse mcp status`: which servers can be reached, and how many tools they have.

use std::{collections::HashMap, time::SystemTime};

use serde_json::json;

use super::{
    common::CommonArgs,
    content::{print, print_json},
    table::{status_table, with_offered},
    target::Select,
    visit::visit,
};
use crate::{
    cli::{Exit, Failure, Format},
    client::hub::State,
    config::policy::{Duplicates, Unreachable},
};

const EXAMPLES: &str = "\
Examples:
  rehearse mcp status                            every server of the configs
  rehearse mcp status --mcp-config .mcp.json --timeout 5s --format json

The exit code is 3 if one of the servers cannot be reached.";

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
        let found = Box::pin(visit.hub.discover()).await.map_err(super::trouble::trouble)?;
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
                let server = |(name, status): &(_, crate::client::hub::Status)| {
                    let failure = unlisted.get(name).map(ToString::to_string);
                    let error = status.last_error.as_ref().map(ToString::to_string).or(failure);
                    json!({
                        "server": name,
                        "status": state(status.state),
                        "tools": status.tools,
                        "since": humantime::format_rfc3339_millis(status.since).to_string(),
                        "error": error.map(|error| visit.hidden(&error)),
                    })
                };
                print_json(&json!({ "servers": statuses.iter().map(server).collect::<Vec<_>>() }))?;
            }
        }
        Ok(match (found.unreachable.is_empty(), found.unlisted.is_empty()) {
            (false, _) => Exit::CannotRun,
            (true, false) => Exit::Violation,
            (true, true) => Exit::Success,
        })
    })
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
