//! The flags that name configs, for every command that takes servers from them.

use std::path::PathBuf;

use super::dialect;
use crate::{
    cli::Failure,
    config::{
        Machine,
        dialect::Dialect,
        sources::{Effective, SourceError, Sources},
    },
};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SourceArgs {
    /// A file with servers; of two servers with one name, that of the later file counts (repeatable)
    #[arg(long, value_name = "FILE")]
    mcp_config: Vec<PathBuf>,
    /// A config file, which counts less than those of --mcp-config
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The program whose files they are [default: told by their place and by what they hold]
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    dialect: Option<&'static Dialect>,
}

impl SourceArgs {
    /// Reads what is named here or by the environment, or else the files of all programs.
    ///
    /// # Errors
    /// A file that was named cannot be read.
    pub(in crate::cli) fn load(&self, machine: &Machine) -> Result<Effective, Failure> {
        let SourceArgs { mcp_config, config, dialect } = self;
        let sources = Sources { mcp_config: mcp_config.clone(), config: config.clone(), dialect: *dialect };
        Ok(sources.load(machine)?)
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Failure::Usage(error.to_string())
    }
}
