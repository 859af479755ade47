//! The environment of a client that a mock is served for: variables, a configuration file, and a pipe for the relays
//! that serve the mock on stdio.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rehearse_mock::serve::MockServer;
use rehearse_protocol::Transport;
use rehearse_system::{
    TempFolder,
    local_pipe::{LocalListener, address_in},
    private,
    program::quoted,
};
use serde_json::{Map, Value as Json, json};

use super::ClientError;

/// A temporary folder with the file and, on Unix, the pipe, deleted on drop.
#[derive(Debug)]
pub struct ClientEnvironment {
    folder: TempFolder,
}

impl ClientEnvironment {
    /// # Errors
    /// The folder, the file or the pipe cannot be created.
    pub fn create(server: &MockServer) -> Result<(ClientEnvironment, LocalListener), ClientError> {
        let parent = std::env::temp_dir();
        let failed = |what, path: &Path, source| ClientError::Create { what, path: path.to_owned(), source };
        let folder = TempFolder::create(&parent).map_err(|error| failed("a folder in", &parent, error))?;
        let environment = ClientEnvironment { folder };
        environment.write_config(server).map_err(|error| failed("the file", &environment.config(), error))?;
        let listener = LocalListener::bind(&environment.pipe());
        let listener = listener.map_err(|error| failed("the socket", &environment.pipe(), error))?;
        Ok((environment, listener))
    }

    fn write_config(&self, server: &MockServer) -> io::Result<()> {
        let mut config = private::create_new(&self.config())?;
        let name = server.engine().name();
        let servers = Map::from_iter(server.client_entry().map(|entry| (name, Json::Object(entry))));
        writeln!(config, "{:#}", json!({ "mcpServers": servers }))
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("mcp.json")
    }

    fn pipe(&self) -> PathBuf {
        address_in(self.folder.path())
    }

    /// The variables of the client. `program` is `rehearse`, which relays the mock on stdio.
    pub fn variables(&self, server: &MockServer, program: Option<&Path>) -> BTreeMap<&'static str, OsString> {
        let mut variables = BTreeMap::from([("REHEARSE_CONFIG", self.config().into_os_string())]);
        variables.extend(program.map(|program| {
            let [program, pipe] = [program, &self.pipe()].map(|path| quoted(&path.display().to_string()));
            ("REHEARSE_STDIO", format!("{program} relay {pipe}").into())
        }));
        variables.extend(server.token().map(|token| ("REHEARSE_TOKEN", token.into())));
        for (transport, url) in server.urls() {
            let name = match transport {
                Transport::Http => "REHEARSE_URL",
                Transport::Sse => "REHEARSE_SSE_URL",
                Transport::Ws => "REHEARSE_WS_URL",
                Transport::Stdio | Transport::Memory => continue,
            };
            variables.extend(url.map(|url| (name, url.into())));
        }
        variables
    }
}
