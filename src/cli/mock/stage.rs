//! What a command is told of the mock that it is run with: variables, a configuration file, and a socket for processes
//! that are the mock on stdio.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rand::RngExt;
use serde_json::{Map, Value as Json, json};
use tokio::net::UnixListener;

use super::announce;
use crate::{mock::serve::MockServer, transport::Transport};

/// A temporary folder for the owner only. It goes when this is dropped.
#[derive(Debug)]
pub(super) struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// # Errors
    /// The folder or something in it cannot be made.
    pub(super) fn set(server: &MockServer) -> io::Result<(Stage, UnixListener)> {
        let folder = std::env::temp_dir().join(format!("rehearse-{:016x}", rand::rng().random::<u64>()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let stage = Stage { folder };
        let mut config = OpenOptions::new().create_new(true).write(true).mode(0o600).open(stage.config())?;
        let name = server.engine().name();
        let servers = Map::from_iter(announce::entry(server).map(|entry| (name, Json::Object(entry))));
        writeln!(config, "{:#}", json!({ "mcpServers": servers }))?;
        let listener = UnixListener::bind(stage.socket())?;
        Ok((stage, listener))
    }

    fn config(&self) -> PathBuf {
        self.folder.join("mcp.json")
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("stdio")
    }

    /// The variables of the command.
    pub(super) fn variables(&self, server: &MockServer) -> io::Result<BTreeMap<&'static str, OsString>> {
        let rehearse = std::env::current_exe()?;
        let relay = [quoted(&rehearse), "relay".into(), quoted(&self.socket())].join(" ");
        let mut variables =
            BTreeMap::from([("REHEARSE_CONFIG", self.config().into_os_string()), ("REHEARSE_STDIO", relay.into())]);
        variables.extend(announce::token(server).map(|token| ("REHEARSE_TOKEN", token.into())));
        for (transport, url) in announce::urls(server) {
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

impl Drop for Stage {
    fn drop(&mut self) {
        // Nothing could be done about it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The path as a word of a shell.
fn quoted(path: &Path) -> String {
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
