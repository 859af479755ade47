//! The flags that commands share.

use std::path::PathBuf;

use serde_json::json;

use super::{
    connection::{ConnectionArgs, RetryArgs},
    print::print_json,
    target::{Select, Server, TargetArgs, only_one},
};
use crate::{
    cli::{Failure, Format},
    client::hub::HubOptions,
};

/// The flags of every command that connects: to which servers, how, and what is printed of it.
#[derive(Debug, clap::Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    print: FormatArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    #[command(flatten)]
    retry: RetryArgs,
}

/// For whom it is printed.
#[derive(Debug, clap::Args)]
pub(super) struct FormatArgs {
    /// How to print it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// As --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// The flags of a command that asks one server for content.
#[derive(Debug, clap::Args)]
pub(super) struct ContentArgs {
    /// The server; not needed if there is only one
    #[arg(long, value_name = "NAME")]
    pub(super) server: Option<String>,
    /// Save images, sounds and other binary content in this file or folder
    #[arg(short, long, value_name = "FILE|FOLDER", value_parser = output)]
    pub(super) output: Option<PathBuf>,
}

impl FormatArgs {
    pub(super) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

impl CommonArgs {
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

    /// The server that is meant, if there is any: the only one, or that of this name, which `place` is for.
    ///
    /// # Errors
    /// As [`CommonArgs::servers`]; there are several, and none was named.
    pub(super) fn one(&self, name: Option<&str>, place: &str) -> Result<Vec<Server>, Failure> {
        let servers = self.servers(Select::from_name(name))?;
        only_one(&servers, place)?;
        Ok(servers)
    }

    /// Sets what is said of connections.
    pub(super) fn apply(&self, options: &mut HubOptions) {
        self.connection.apply(options);
        options.retry = self.retry.retry();
    }

    /// As [`CommonArgs::servers`], for a command that prints something of each of them. If there are none, programs are
    /// told so.
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
        "-" => Err("binary content goes into files only; ./- is a file of this name".to_owned()),
        path => Ok(path.into()),
    }
}
