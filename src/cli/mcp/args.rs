//! Arguments that several commands share.

use std::path::PathBuf;

use serde_json::json;

use super::{
    print::print_json,
    target::{
        Select, Server, TargetArgs, check_single,
        connection::{ConnectionArgs, RetryArgs},
    },
};
use crate::cli::{Failure, Format};
use rehearse_hub::HubOptions;

/// The arguments of every command that connects to servers.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    print: FormatArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    retry: RetryArgs,
    #[command(flatten)]
    pub(super) traffic: TrafficArgs,
}

/// What becomes of the traffic.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Connections")]
pub(super) struct TrafficArgs {
    /// Check the traffic against the MCP specification; a violated MUST fails the command
    #[arg(long, hide_short_help = true)]
    pub(super) check: bool,
    /// Write all traffic to this file as it happens
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) trace_file: Option<PathBuf>,
}

/// The output format.
#[derive(Debug, Default, clap::Args)]
pub(super) struct FormatArgs {
    /// Output format: human or json
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true)]
    format: Format,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// The arguments of a command that requests content from one server.
#[derive(Debug, clap::Args)]
pub(crate) struct ContentArgs {
    /// The server; optional if there is only one
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Save images, audio and other binary content to this file or folder
    #[arg(short, long, value_name = "FILE|FOLDER", value_parser = output)]
    pub(super) output: Option<PathBuf>,
}

impl FormatArgs {
    pub(super) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

impl CommonArgs {
    /// These servers and this way to connect, and nothing else.
    pub(super) fn new(target: &TargetArgs, connection: &ConnectionArgs) -> CommonArgs {
        CommonArgs { target: target.clone(), connection: connection.clone(), ..CommonArgs::default() }
    }

    pub(super) fn format(&self) -> Format {
        self.print.format()
    }

    /// As [`TargetArgs::servers`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn servers(&self, select: Select<'_>) -> Result<Vec<Server>, Failure> {
        self.target.servers(select, self.connection.show_secrets)
    }

    /// The server of this name, or the only one; `place` is the argument that selects it.
    ///
    /// # Errors
    /// As [`CommonArgs::servers`]; or there are several servers and no name.
    pub(super) fn one(&self, name: Option<&str>, place: &str) -> Result<Vec<Server>, Failure> {
        let servers = self.servers(Select::from_name(name))?;
        check_single(&servers, place)?;
        Ok(servers)
    }

    /// Sets the options of connections.
    pub(super) fn apply(&self, options: &mut HubOptions) {
        self.connection.apply(options);
        options.retry = self.retry.retry();
        options.repeats_calls = options.retry.attempts > 0;
    }

    /// As [`CommonArgs::servers`], for a command that prints a result for each server. Without servers, the JSON format
    /// prints an empty array.
    ///
    /// # Errors
    /// As there.
    pub(super) fn several(&self, select: Select<'_>) -> Result<Vec<Server>, Failure> {
        let servers = self.servers(select)?;
        if servers.is_empty() && self.format() == Format::Json {
            print_json(&json!({ "servers": [] }))?;
        }
        Ok(servers)
    }
}

fn output(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("binary content cannot go to standard output; use ./- for a file named -".to_owned()),
        path => Ok(path.into()),
    }
}
