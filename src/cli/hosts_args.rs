//! Where the programs of hosts are.

use std::path::{Path, PathBuf};

use super::Failure;
use rehearse_host::{HeadlessHost, UnknownHost};
use rehearse_system::program::quoted;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct HostsArgs {
    /// A folder with installed hosts [default: that of REHEARSE_HOSTS]
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    hosts: Option<PathBuf>,
}

impl HostsArgs {
    /// The folder, if there is one.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let usual = || std::env::var_os("REHEARSE_HOSTS").filter(|it| !it.is_empty()).map(PathBuf::from);
        self.hosts.clone().or_else(usual)
    }

    /// The option as it was given, for a command line that repeats it.
    pub(super) fn again(&self) -> String {
        let folder = self.hosts.as_ref().map(|folder| format!(" --hosts {}", quoted(&folder.display().to_string())));
        folder.unwrap_or_default()
    }

    /// The program of a host, if it is on this machine.
    pub(super) fn program(&self, host: &HeadlessHost) -> Option<PathBuf> {
        host.program(self.folder().as_deref())
    }

    /// The host of a name, or of a file, with its program.
    ///
    /// # Errors
    /// There is no such host, or it is not on this machine.
    pub(super) fn find(&self, name: &str) -> Result<(HeadlessHost, PathBuf), Failure> {
        let host = HeadlessHost::named(name, Path::new("")).map_err(|error| match error {
            UnknownHost::Invalid(mistakes) => Failure::Invalid(mistakes),
            error => Failure::Usage(error.to_string()),
        })?;
        match self.program(&host) {
            Some(program) => Ok((host, program)),
            None => Err(Failure::cannot(host.missing())),
        }
    }
}
