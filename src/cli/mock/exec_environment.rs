//! The environment of a command of `--exec`: variables, a configuration file, and a socket for the relays that serve the
//! mock on stdio.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value as Json, json};
use tokio::net::UnixListener;

use super::announcement;
use crate::cli::Failure;
use rehearse_client::TempFolder;
use rehearse_mock::serve::MockServer;
use rehearse_protocol::Transport;

/// A temporary folder with the file and the socket, deleted on drop.
#[derive(Debug)]
pub(in crate::cli) struct ExecEnvironment {
    folder: TempFolder,
}

impl ExecEnvironment {
    /// # Errors
    /// The folder, the file or the socket cannot be created.
    pub(in crate::cli) fn create(server: &MockServer) -> Result<(ExecEnvironment, UnixListener), Failure> {
        let parent = std::env::temp_dir();
        let failed = |what: &str, path: &Path, error: io::Error| {
            let why = Failure::cannot(format!("cannot create {what} {}: {error}", path.display()));
            why.hint("set TMPDIR to a writable folder with a short path")
        };
        let folder = TempFolder::create(&parent).map_err(|error| failed("a folder in", &parent, error))?;
        let environment = ExecEnvironment { folder };
        environment.write_config(server).map_err(|error| failed("the file", &environment.config(), error))?;
        let listener = UnixListener::bind(environment.socket());
        let listener = listener.map_err(|error| failed("the socket", &environment.socket(), error))?;
        Ok((environment, listener))
    }

    fn write_config(&self, server: &MockServer) -> io::Result<()> {
        let mut config = OpenOptions::new().create_new(true).write(true).mode(0o600).open(self.config())?;
        let name = server.engine().name();
        let servers = Map::from_iter(announcement::entry(server).map(|entry| (name, Json::Object(entry))));
        writeln!(config, "{:#}", json!({ "mcpServers": servers }))
    }

    /// A path in the folder.
    pub(in crate::cli) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("mcp.json")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("stdio")
    }

    /// The variables of the command.
    pub(in crate::cli) fn variables(&self, server: &MockServer) -> io::Result<BTreeMap<&'static str, OsString>> {
        let rehearse = std::env::current_exe()?;
        let relay = [quoted(&rehearse), "relay".into(), quoted(&self.socket())].join(" ");
        let mut variables =
            BTreeMap::from([("REHEARSE_CONFIG", self.config().into_os_string()), ("REHEARSE_STDIO", relay.into())]);
        variables.extend(announcement::token(server).map(|token| ("REHEARSE_TOKEN", token.into())));
        for (transport, url) in announcement::urls(server) {
            let name = match transport {
                Transport::Http => "REHEARSE_URL",
                Transport::Sse => "REHEARSE_SSE_URL",
                Transport::Ws => "REHEARSE_WS_URL",
                Transport::Stdio | Transport::Memory => continue,
            };
            variables.extend(url.map(|url| (name, url.into())));
        }
        Ok(variables)
    }
}

/// The path as a word of a shell.
pub(in crate::cli) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+:@%,".contains(it);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let quoted = |text: &str| quoted(Path::new(text));
        assert_eq!(quoted("/usr/bin/rehearse-1.0"), "/usr/bin/rehearse-1.0");
        assert_eq!(quoted("/my files/it's"), r"'/my files/it'\''s'");
        assert_eq!(quoted("/a;b$c"), "'/a;b$c'");
    }
}
