//! A host with a home, a config and an environment of its own.

use std::{collections::BTreeMap, ffi::OsString, path::Path, process::Command};

use rehearse_client::{Endpoint, Target};
use rehearse_client_configs::{
    headless::{Headless, Values},
    server::{At, ConfiguredServer, Pair},
};
use rehearse_document::{Source, Span};
use rehearse_system::program;

use crate::{HostError, folders::HostFolders, logs, proxy::RefusingProxy};

/// A key that is none. Some hosts hide it wherever it occurs, so that it must be long.
const KEY: &str = "sk-rehearse-0000000000000000000000000000";

/// What a host is asked to do: hosts put their own texts around it.
pub const PROMPT: &str = "Call every tool of the server once.";

/// A name of a server that every host leaves as it is: they write other characters in ways of their own, so that its tools
/// could not be allowed.
pub fn plain_name(name: &str) -> String {
    name.replace(|it: char| !(it.is_ascii_alphanumeric() || "_-".contains(it)), "-")
}

/// A host that can be started once. Its folders are removed on drop.
pub struct PreparedHost {
    folders: HostFolders,
    proxy: RefusingProxy,
    values: Values,
    words: Vec<String>,
    variables: BTreeMap<String, OsString>,
}

impl PreparedHost {
    /// Makes the folders and writes the files: its config has the server of this name. `model` is the URL of its model, without
    /// `/v1`.
    ///
    /// # Errors
    /// Its folders or files cannot be made, no port is free, or its config cannot have the server.
    pub fn create(
        headless: &Headless,
        (name, server): (&str, &Target),
        model: String,
        prompt: String,
    ) -> Result<PreparedHost, HostError> {
        let (folders, proxy) = (HostFolders::create()?, RefusingProxy::start()?);
        let values = Values {
            prompt,
            model,
            key: KEY.to_owned(),
            home: folders.home().display().to_string(),
            work: folders.work().display().to_string(),
            servers: vec![name.to_owned()],
        };
        let files = headless.write_files(&[configured(name, server)?], &values).map_err(|losses| {
            HostError::Config(losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        for file in files {
            folders.write(Path::new(&file.path), file.text.as_bytes())?;
        }
        let mut variables = folders.variables(proxy.url());
        variables.extend(headless.variables(&values).into_iter().map(|(name, value)| (name, value.into())));
        Ok(PreparedHost { words: headless.arguments(&values), folders, proxy, values, variables })
    }

    /// What starts its program.
    pub fn command(&self, program: &Path) -> Command {
        command(program, &self.words, &self.variables, &self.folders)
    }

    /// The texts of the files in which it says why something failed, each with the number of the pattern that names it.
    pub(crate) fn logs(&self, headless: &Headless) -> Vec<(usize, String)> {
        logs::read(headless, &self.values)
    }

    /// The hosts that it tried to reach.
    pub(crate) fn tried_to_reach(&self) -> Vec<String> {
        self.proxy.tried()
    }
}

/// A program in the folders, with nothing but this environment.
pub(crate) fn command(
    program: &Path,
    words: &[String],
    variables: &BTreeMap<String, OsString>,
    folders: &HostFolders,
) -> Command {
    let mut command = program::command(program, variables.get("PATH").map(OsString::as_os_str));
    command.args(words).env_clear().envs(variables).current_dir(folders.work());
    command
}

/// The server as a config has it.
fn configured(name: &str, server: &Target) -> Result<ConfiguredServer, HostError> {
    let transport = server.transport();
    let source = Source::new("the command line", "");
    let mut configured = ConfiguredServer::new(source, at(name), At { value: transport, span: Span::default() });
    match server {
        Target::Stdio(command) => {
            configured.command = Some(at(&command.program));
            configured.args = command.args.iter().map(|word| at(word)).collect();
        }
        Target::Http(Endpoint { url, headers }) | Target::Sse(Endpoint { url, headers }) => {
            configured.url = Some(at(url));
            let pairs = headers.iter().map(|(name, value)| Pair { name: at(name), value: at(value) });
            configured.headers = pairs.collect();
        }
        _ => return Err(HostError::Transport(transport)),
    }
    Ok(configured)
}

fn at(text: &str) -> At<String> {
    At { value: text.to_owned(), span: Span::default() }
}
