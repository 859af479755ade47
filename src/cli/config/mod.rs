//! `rehearse config`: what programs are told about their MCP servers.

mod convert;

use clap::{Args, Subcommand};

use super::{Exit, Failure};
use crate::config::{
    dialect::{ALL, Dialect, named},
    nearest,
};

/// Work with the files in which programs keep their MCP servers
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: Config,
}

#[derive(Debug, Subcommand)]
enum Config {
    Convert(convert::ConvertArgs),
}

pub(super) fn run(args: ConfigArgs) -> Result<Exit, Failure> {
    match args.command {
        Config::Convert(args) => convert::run(&args),
    }
}

/// The dialect that somebody asks for.
///
/// # Errors
/// There is none of that name: what there is, and which one could be meant.
pub(super) fn dialect(name: &str) -> Result<&'static Dialect, String> {
    let names: Vec<_> = ALL.iter().map(|dialect| dialect.name).collect();
    named(name).ok_or_else(|| match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`? There are {}", names.join(", ")),
        None => format!("there are {}", names.join(", ")),
    })
}

/// The dialects with their programs, one a line.
pub(super) fn dialects() -> String {
    let line = |dialect: &&Dialect| format!("  {:16} {}", dialect.name, dialect.program);
    ALL.iter().map(line).collect::<Vec<_>>().join("\n")
}
