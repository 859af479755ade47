//! Dialects: how each program writes down its MCP servers, and what it makes of them.
//!
//! A dialect is a table, one file each, from which servers are read. What programs do is in `docs/config-dialects.md`. To
//! add a dialect is one file and one line in [`ALL`].

mod amazon_q;
mod claude_code;
mod claude_desktop;
mod cline;
mod code_agent;
mod continue_dev;
mod copilot;
mod cpe;
mod cursor;
mod engine;
mod gemini;
mod kiro;
mod librechat;
mod mcpilot;
mod opencode;
mod place;
mod roo;
mod schema;
mod vscode;
mod windsurf;
mod zed;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use place::Place;

use super::{
    Entry, Form, Node, Source,
    document::Document,
    json::LibertyKind,
    policy::Policy,
    read::{TELLING, fit, looks_like_servers},
};
use crate::transport::Transport;

/// Every dialect. Where a file fits several equally well, the first is taken.
pub static ALL: &[&Dialect] = &[
    &claude_code::DIALECT,
    &claude_desktop::DIALECT,
    &vscode::DIALECT,
    &copilot::DIALECT,
    &cursor::DIALECT,
    &cline::DIALECT,
    &roo::DIALECT,
    &mcpilot::DIALECT,
    &windsurf::DIALECT,
    &gemini::DIALECT,
    &amazon_q::DIALECT,
    &kiro::DIALECT,
    &engine::DIALECT,
    &code_agent::DIALECT,
    &opencode::DIALECT,
    &zed::DIALECT,
    &cpe::DIALECT,
    &librechat::DIALECT,
    &continue_dev::DIALECT,
];

/// Whose variables name servers and files of servers.
pub(super) static OF_THE_VARIABLES: &Dialect = &code_agent::DIALECT;

/// How a program writes down its servers.
#[derive(Debug)]
pub struct Dialect {
    /// As people type it: `claude-code`.
    pub name: &'static str,
    /// The program that owns the format.
    pub program: &'static str,
    pub syntax: Syntax,
    /// Its files. Of two for the same servers, the program prefers the first; all of a project come before the user's.
    pub files: &'static [Place],
    /// Where the servers are: keys from the root on. The first that is there counts; the first of all is what is written.
    pub roots: &'static [&'static [&'static str]],
    /// Whether a file may be nothing but the servers, and if so, what there is to say about it.
    pub bare: Option<&'static str>,
    pub collection: Collection,
    /// What else stands beside the servers.
    pub root_keys: RootKeys,
    /// Where the values are that hold for every server that has none of its own.
    pub defaults: Option<&'static [&'static str]>,
    /// The key beside the servers that turns all of them off when it is false.
    pub switch: Option<&'static str>,
    /// The key of an object with a config for each project of the user, by the path of its folder. It counts more than
    /// the project's own files.
    pub projects: Option<&'static str>,
    /// The keys of a server.
    pub keys: &'static [Key],
    /// What a file has beside its servers, and what is written there if nobody said.
    pub beside: &'static [Beside],
    /// Keys that a server which is started needs besides its command.
    pub required: &'static [&'static str],
    /// The words for transports. The first word for a transport is what is written.
    pub transports: &'static [(&'static str, Transport)],
    /// Whether a word for a transport that it does not know is passed over.
    pub guesses: bool,
    /// Whether numbers and flags may be written as texts.
    pub coerces: bool,
    pub untyped: Untyped,
    pub both: Both,
    pub timeout: Option<TimeoutRule>,
    pub variables: VariableRule,
    /// What `env` and `headers` may hold besides texts.
    pub loose_values: bool,
    /// Characters besides letters and digits that the name of a server may have; `None` if any.
    pub name_characters: Option<&'static str>,
    /// Names that the program has for itself.
    pub reserved_names: &'static [&'static str],
    /// Schemes of URLs besides those of the transports.
    pub schemes: &'static [&'static str],
    /// Whether a server with an empty URL is passed over without a word.
    pub empty_url: bool,
    /// Whether a server without a command and a URL is described elsewhere: only switched on or off here.
    pub partial: bool,
    /// Whether `~/` at the beginning of a command, an argument or a directory is the home folder.
    pub expands_home: bool,
    pub policy: Policy,
    /// Whether the file describes an agent as well: `models`, `defaults`, `subagent`.
    pub agent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON with these liberties.
    Json(&'static [LibertyKind]),
    /// YAML 1.2; strict JSON if the file's name says so.
    Yaml,
    /// YAML, or JSON with these liberties.
    Either(&'static [LibertyKind]),
}

/// How servers get their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// `{ name: { … } }`
    Map,
    /// `[{ name: …, … }]`. An item with the key `elsewhere` refers to a server that is described somewhere else.
    List { elsewhere: Option<&'static str> },
}

/// A key beside the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    pub key: &'static str,
    pub value: &'static str,
    /// Whether the program rejects a file without it.
    pub required: bool,
}

/// The keys beside the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKeys {
    /// These, and whatever else is passed over.
    Known(&'static [&'static str]),
    /// The servers are one section of a file about other things; some of those that no other program has.
    Section(&'static [&'static str]),
    /// Any other key is an error.
    Only(&'static [&'static str]),
}

/// A key of a server, or of an object in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub field: Field,
    pub of: Of,
}

impl Key {
    const fn new(name: &'static str, field: Field) -> Key {
        Key { name, field, of: Of::All }
    }

    const fn of(name: &'static str, field: Field, of: Of) -> Key {
        Key { name, field, of }
    }
}

/// The transports that a key is for, and what the program does with it elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    All,
    /// Servers that are started. Elsewhere it is rejected if `strict`, and passed over if not.
    Process {
        strict: bool,
    },
    /// Servers that are dialled, as above.
    Remote {
        strict: bool,
    },
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Name,
    Transport,
    Command,
    /// A list with the command and its arguments.
    CommandLine,
    Args,
    Env,
    EnvFile,
    Cwd,
    /// A URL, which says the transport if that is given here.
    Url(Option<Transport>),
    Headers,
    /// For whatever is waited for.
    Timeout,
    /// For a call only.
    CallTimeout,
    Include,
    Exclude,
    Enabled,
    Disabled,
    Trust,
    AlwaysAllow,
    Debug,
    /// What a token is for: `bearer`, `api_key`, or something of the program.
    AuthKind,
    /// A token, which is for `Authorization: Bearer` if nothing says otherwise.
    Bearer,
    ClientId,
    ClientSecret,
    /// A list of scopes; a text with blanks between them is understood.
    Scopes,
    /// A text of scopes with blanks between them; a list is understood.
    ScopeText,
    CallbackPort,
    MetadataUrl,
    /// An object with these keys.
    Object(&'static [Key]),
    /// Something of the program that means nothing to others.
    Own,
}

/// What a server without a word for its transport is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untyped {
    /// An error.
    Rejected,
    /// Started if it has a command; a URL alone is an error.
    Process,
    /// Started if it has a command; a URL that says no transport of its own is this.
    Inferred(Transport),
}

/// What a server with a command and a URL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Both {
    Rejected,
    /// Its word for the transport decides; without one it is started.
    Started,
    /// Its word for the transport decides; without one it is dialled.
    Dialled,
}

/// What a number means as a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutRule {
    /// Milliseconds in one.
    pub unit: u64,
    /// Both in the unit, and both still good.
    pub least: u64,
    pub most: u64,
    pub outside: Outside,
    /// What holds without one.
    pub default: u64,
}

/// What becomes of a timeout out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    Rejected,
    /// The nearest one that is in range is taken.
    Clamped,
    /// It is as if there were none.
    Ignored,
}

/// Which references are replaced, where, and what an unset variable is.
#[derive(Clone, Copy, Debug)]
pub struct VariableRule {
    pub forms: &'static [Form],
    /// `${NAME}` that the program knows by itself: `workspaceFolder`.
    pub known: &'static [&'static str],
    /// Whether a value must be one reference and nothing else.
    pub whole: bool,
    pub places: Places,
    pub unset: Unset,
    pub empty: Empty,
}

impl VariableRule {
    /// Nothing is replaced.
    const NONE: VariableRule = VariableRule {
        forms: &[],
        known: &[],
        whole: false,
        places: Places::Nowhere,
        unset: Unset::Kept,
        empty: Empty::Nothing,
    };
}

/// What a variable is that is set to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// Nothing, unless the reference has a default.
    Nothing,
    /// Nothing, even beside a default.
    Set,
    /// As if it were not set.
    Unset,
}

/// The values in which references are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    Nowhere,
    Everywhere,
    /// In those of these fields.
    In(&'static [Field]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unset {
    Empty,
    Rejected,
    /// The reference stays as it is written.
    Kept,
    /// Nobody outside of the program knows.
    Unknown,
}

/// The dialect of a file, and why.
#[derive(Clone, Debug)]
pub struct Detected {
    pub dialect: &'static Dialect,
    pub why: String,
}

/// The dialect of that name.
pub fn named(name: &str) -> Option<&'static Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name == name)
}

/// The dialect that has a file of this path, and how the path ends that tells.
pub fn by_path(path: &Path) -> Option<(&'static Dialect, &'static str)> {
    let path = path.to_string_lossy().replace('\\', "/");
    let ends =
        |suffix: &str| path.strip_suffix(suffix).is_some_and(|before| before.is_empty() || before.ends_with('/'));
    let suffix = |dialect: &Dialect| dialect.files.iter().map(|place| place.suffix()).find(|it| ends(it));
    ALL.iter().find_map(|dialect| Some((*dialect, suffix(dialect)?)))
}

/// The path of the file that an example is one of: `.mcp.json` for `.mcp.json.example`.
fn without_ending(path: &Path) -> PathBuf {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("example" | "sample" | "template" | "dist" | "bak") => path.with_extension(""),
        _ => path.to_owned(),
    }
}

/// Tells the dialect of a file: by its name and place first, then by what is in it. `None` if it has no servers in any
/// dialect's place.
pub(super) fn detect(path: Option<&Path>, document: &Document, source: &Arc<Source>) -> Option<Detected> {
    let root = &document.root;
    if let Some((dialect, suffix)) = path.and_then(|path| by_path(&without_ending(path))) {
        return Some(Detected { dialect, why: format!("its path ends with {suffix}") });
    }
    let candidates: Vec<_> = ALL.iter().copied().filter(|dialect| dialect.servers(root).is_some()).collect();
    let wrong_syntax = |dialect: &Dialect| match dialect.syntax {
        Syntax::Json(_) => u32::from(document.is_yaml()) * 100,
        Syntax::Yaml => u32::from(!document.is_yaml()),
        Syntax::Either(_) => 0,
    };
    let against = |dialect: &Dialect| wrong_syntax(dialect) + 5 * document.liberties_against(dialect);
    let dialect = *candidates.iter().min_by_key(|dialect| fit(root, dialect, source) + against(dialect))?;
    let servers = dialect.each_server(root);
    let of_server = |dialect: &Dialect| dialect.keys.iter().map(|key| key.name).collect::<Vec<_>>();
    let (own, first) = (of_server(dialect), of_server(candidates[0]));
    let telling = own
        .iter()
        .filter(|key| !first.contains(key))
        .find(|key| servers.iter().take(TELLING).any(|it| it.get(key).is_some()));
    let why = match dialect.evidence(root).first().or(telling) {
        Some(key) => format!("it has `{key}`"),
        None => match dialect.roots.iter().find(|keys| at(root, keys).is_some()) {
            Some(keys) => format!("its servers are under `{}`", keys.join(".")),
            None => "it is nothing but servers".into(),
        },
    };
    Some(Detected { dialect, why })
}

fn at<'n>(root: &'n Node, keys: &[&str]) -> Option<&'n Node> {
    keys.iter().try_fold(root, |node, key| node.get(key))
}

impl Dialect {
    /// What most programs have in common, for tables to say only what is theirs.
    const PLAIN: Dialect = Dialect {
        name: "",
        program: "",
        syntax: Syntax::Json(&[]),
        files: &[],
        roots: &[&["mcpServers"]],
        bare: None,
        collection: Collection::Map,
        root_keys: RootKeys::Known(&[]),
        defaults: None,
        switch: None,
        projects: None,
        keys: &[],
        beside: &[],
        required: &[],
        transports: &[],
        guesses: false,
        coerces: false,
        untyped: Untyped::Rejected,
        both: Both::Started,
        timeout: None,
        variables: VariableRule::NONE,
        loose_values: false,
        name_characters: None,
        reserved_names: &[],
        schemes: &[],
        empty_url: false,
        partial: false,
        expands_home: false,
        agent: false,
        policy: Policy::USUAL,
    };

    /// The servers of a file, if it has any where this program looks for them.
    pub fn servers<'n>(&self, root: &'n Node) -> Option<&'n Node> {
        let bare = || (self.bare.is_some() && looks_like_servers(root)).then_some(root);
        self.roots.iter().find_map(|keys| at(root, keys)).or_else(bare)
    }

    /// What is written for each server.
    fn each_server<'n>(&self, root: &'n Node) -> Vec<&'n Node> {
        match (self.collection, self.servers(root)) {
            (Collection::Map, Some(map)) => map.entries().unwrap_or_default().iter().map(|entry| &entry.node).collect(),
            (Collection::List { .. }, Some(list)) => list.items().unwrap_or_default().iter().collect(),
            (_, None) => Vec::new(),
        }
    }

    /// Whether the servers are not in the first of the places that this program has for them.
    pub(super) fn is_second_choice(&self, root: &Node) -> bool {
        let mut roots = self.roots.iter().map(|keys| at(root, keys).is_some());
        roots.next() == Some(false) && roots.any(|is_there| is_there)
    }

    /// What turns all servers of a file on or off.
    pub fn switch<'n>(&self, root: &'n Node) -> Option<&'n Entry> {
        let (key, place) = (self.switch?, self.roots.iter().find(|keys| at(root, keys).is_some())?);
        let (_, above) = place.split_last()?;
        at(root, above)?.entries().ok()?.iter().find(|entry| entry.key == key)
    }

    /// The keys beside the servers that are this program's.
    pub(super) fn evidence(&self, root: &Node) -> Vec<&'static str> {
        let (RootKeys::Known(keys) | RootKeys::Section(keys) | RootKeys::Only(keys)) = self.root_keys;
        keys.iter().copied().filter(|key| root.get(key).is_some()).collect()
    }
}

#[cfg(test)]
mod tests;
