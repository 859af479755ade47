//! `rehearse config`: what the configurations of other programs say.

mod show;
mod sources;

use super::{Exit, Failure};
use crate::config::{
    dialect::{self, Dialect},
    nearest,
};

pub(in crate::cli) use self::sources::SourceArgs;

/// Look at configurations of MCP clients
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(show::ShowArgs),
}

pub(super) fn run(args: &ConfigArgs) -> Result<Exit, Failure> {
    match &args.command {
        Command::Show(args) => show::run(args),
    }
}

/// The dialect of that name.
///
/// # Errors
/// There is none; what is there instead.
fn dialect(name: &str) -> Result<&'static Dialect, String> {
    dialect::named(name).ok_or_else(|| {
        let names: Vec<_> = dialect::ALL.iter().map(|dialect| dialect.name).collect();
        match nearest(name, &names) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are {}", names.join(", ")),
        }
    })
}
