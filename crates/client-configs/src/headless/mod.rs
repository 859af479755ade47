//! How hosts are started without a person: the section `headless` of their files.

mod failure;
mod read;
#[cfg(test)]
mod tests;
mod values;

use std::{collections::BTreeMap, path::Path, sync::LazyLock, time::Duration};

use regex::Regex;

use crate::{
    convert::{Loss, Notation, with_servers},
    dialect::{Dialect, HOSTS},
    server::ConfiguredServer,
};
use rehearse_document::{Node, Problems, Source, parse_yaml};

pub use failure::{Failure, FailurePattern, FailureSource};
pub use values::Values;

/// How a host is started without a person. In its texts are placeholders, which [`Values`] fill.
#[derive(Clone, Debug)]
pub struct Headless {
    pub package: Package,
    /// The program's name, and its arguments.
    pub command: Vec<String>,
    /// Its variables besides those that every host gets: the home folder, the proxies.
    pub env: BTreeMap<String, String>,
    pub files: Vec<HomeFile>,
    pub model: ModelApi,
    pub tool_names: ToolNameForm,
    pub failures: Vec<FailurePattern>,
    /// What differs from run to run in the results that the model sees.
    pub redact: Vec<Regex>,
    /// Output that asks for a login.
    pub needs_account: Vec<Regex>,
    /// How long the first question to the model may take.
    pub start_limit: Duration,
}

/// What a registry has of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub registry: Registry,
    pub name: String,
    /// The version that was tried.
    pub version: String,
    /// The program below the folder into which the package is installed.
    pub program: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    Npm,
    PyPi,
}

/// A file that a host reads.
#[derive(Clone, Debug)]
pub struct HomeFile {
    pub path: String,
    /// How the servers are written into it, if they are.
    pub servers: Option<&'static Dialect>,
    /// An object with more keys of each server.
    pub each_server: Node,
    /// An object with what is beside the servers.
    pub with: Node,
}

/// The API by which a host asks its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
}

/// The name that the model sees of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNameForm {
    /// A template with `{server}` and `{tool}`. In a namespace, a tool has its own name.
    pub form: String,
    /// The template of a namespace of the Responses API.
    pub namespace: Option<String>,
    /// The characters besides ASCII letters and digits that stay as they are; `None` for all.
    pub keeps: Option<String>,
    /// The most characters, with those of the namespace and `__`.
    pub longest: Option<usize>,
}

/// A file with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    pub path: String,
    pub text: String,
}

/// A host of which it is known whether it starts without a person.
#[derive(Debug)]
struct Host {
    name: &'static str,
    title: String,
    start: Start,
}

#[derive(Debug)]
enum Start {
    Headless(Box<Headless>),
    /// Why not.
    Not(String),
}

static STARTS: LazyLock<Vec<Host>> = LazyLock::new(|| {
    let read = |host: &'static crate::dialect::Host| {
        let source = Source::new(format!("{}.yaml", host.name), host.text);
        let (title, start) = read::host(&source).ok()??;
        Some(Host { name: host.name, title, start })
    };
    let says = |host: &&'static crate::dialect::Host| {
        host.text.contains("\nheadless:") || host.text.contains("\nnotHeadless:")
    };
    HOSTS.iter().filter(says).filter_map(read).collect()
});

/// The hosts that can be started without a person: name, title, and how.
pub fn headless_hosts() -> impl Iterator<Item = (&'static str, &'static str, &'static Headless)> {
    STARTS.iter().filter_map(|host| match &host.start {
        Start::Headless(headless) => Some((host.name, &*host.title, &**headless)),
        Start::Not(_) => None,
    })
}

/// The hosts that cannot: name, title and reason.
pub fn not_headless() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    STARTS.iter().filter_map(|host| match &host.start {
        Start::Headless(_) => None,
        Start::Not(reason) => Some((host.name, &*host.title, &**reason)),
    })
}

/// The host of a file of the user: its name, its title, and how it is started; `None` if the file does not say that.
///
/// # Errors
/// Every mistake, with its position.
pub fn read_host(source: &Source) -> Result<Option<(String, String, Headless)>, Problems> {
    let name = parse_yaml(source)?.get("name").and_then(Node::as_str).unwrap_or_default().to_owned();
    Ok(match read::host(source)? {
        Some((title, Start::Headless(headless))) => Some((name, title, *headless)),
        Some((_, Start::Not(_))) | None => None,
    })
}

impl Headless {
    /// The arguments of its program.
    pub fn arguments(&self, values: &Values) -> Vec<String> {
        self.command.iter().skip(1).flat_map(|argument| values.expand_each(argument)).collect()
    }

    /// Its variables.
    pub fn variables(&self, values: &Values) -> BTreeMap<String, String> {
        self.env.iter().map(|(name, value)| (name.clone(), values.expand(value))).collect()
    }

    /// The name of its program.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", |name| name)
    }

    /// Its files with these servers, whose texts mean themselves and refer to nothing.
    ///
    /// # Errors
    /// What the host cannot have of the servers.
    pub fn write_files(&self, servers: &[ConfiguredServer], values: &Values) -> Result<Vec<WrittenFile>, Vec<Loss>> {
        let file = |file: &HomeFile| {
            let with = values.expand_node(&file.with);
            let root = match file.servers {
                Some(dialect) => with_servers(servers, dialect, &values.expand_node(&file.each_server), with)?,
                None => with,
            };
            let path = values.expand(&file.path);
            let text = Notation::of_path(Path::new(&path)).emit(&root);
            Ok(WrittenFile { path, text })
        };
        self.files.iter().map(file).collect()
    }
}

impl ModelApi {
    pub const ALL: [ModelApi; 4] =
        [ModelApi::Anthropic, ModelApi::OpenAiChat, ModelApi::OpenAiResponses, ModelApi::Gemini];

    /// As the files of hosts call it.
    pub fn as_str(self) -> &'static str {
        match self {
            ModelApi::Anthropic => "anthropic",
            ModelApi::OpenAiChat => "openai-chat",
            ModelApi::OpenAiResponses => "openai-responses",
            ModelApi::Gemini => "gemini",
        }
    }
}
