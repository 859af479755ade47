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
mod continue_json;
mod copilot;
mod cpe;
mod cursor;
mod detect;
mod engine;
mod gemini;
mod junie;
mod kiro;
mod librechat;
mod mcpilot;
mod opencode;
mod others;
mod place;
mod roo;
mod schema;
mod section;
mod servers;
mod variables;
mod vscode;
mod windsurf;
mod zed;

use std::time::Duration;

pub use detect::{Detected, by_path, named};
pub(super) use detect::{detect, is_about_other_things, without_ending};
pub(super) use others::of_other_program;
pub use place::Place;
pub(super) use servers::Set;
pub use variables::{Empty, Places, Template, Unset, VariableRule};
pub(super) use variables::{is_from_home, kind};

use super::{json::LibertyKind, policy::Policy};
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
    &continue_json::DIALECT,
    &junie::DIALECT,
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
    /// Liberties that it seems to grant, and of which nobody says so.
    pub doubtful: &'static [LibertyKind],
    /// Its files. Of two for the same servers, the program prefers the first; all of a project come before the user's.
    pub files: &'static [Place],
    /// Those of its files in which people put servers that it does not look for there. They belong into the first file.
    pub not_in: &'static [Place],
    /// Files of other programs that it reads as well.
    pub guest_in: &'static [Place],
    /// Where all of this is in a file about other things: keys from the root on.
    pub sections: &'static [&'static [&'static str]],
    /// Where the servers are: keys from the root on. The first that is there counts; the first of all is what is written.
    pub roots: &'static [&'static [&'static str]],
    /// Whether a file may be nothing but the servers, and if so, what there is to say about it.
    pub bare: Option<&'static str>,
    pub collection: Collection,
    /// What else stands beside the servers.
    pub root_keys: RootKeys,
    /// What only this program replaces, in files that nobody else has: how the names of such references begin.
    pub marks: &'static [&'static str],
    /// Which files it rejects for a key beside the servers that it does not know.
    pub strict_files: Files,
    /// Whether a file may be without the key for servers, as long as it has nothing but what belongs beside them.
    pub may_be_empty: bool,
    /// Where the values are that hold for every server that has none of its own.
    pub defaults: Option<&'static [&'static str]>,
    /// The key beside the servers that turns all of them off when it is false.
    pub switch: Option<&'static str>,
    /// Profiles with servers of their own, of which one is used at a time.
    pub profiles: Option<Profiles>,
    /// Whether a file may be one server, which is called as the file is.
    pub lone: bool,
    /// Whether the servers may be a path to another file instead, or a list of such paths and of servers.
    pub is_linked: bool,
    /// Lists of the servers that are used and of those that are not.
    pub name_lists: Option<NameLists>,
    /// The key of an object with a config for each project of the user, by the path of its folder. It counts more than
    /// the project's own files.
    pub projects: Option<&'static str>,
    /// The keys of a server.
    pub keys: &'static [Key],
    /// Whether it rejects a file for a key of a server that it does not know.
    pub strict: bool,
    /// What a file has beside its servers, and what is written there if nobody said.
    pub beside: &'static [Beside],
    /// Keys that a server which is started needs besides its command.
    pub required: &'static [&'static str],
    /// Words for transports whose URL stands under one key and no other.
    pub url_keys: &'static [(&'static str, &'static str)],
    /// Whether an object in a server that has a key for the transport must have it.
    pub typed_objects: bool,
    /// The words for transports. The first word for a transport is what is written; where one stands for several, the URL
    /// tells which.
    pub transports: &'static [(&'static str, Transport)],
    /// Whether a word for a transport that it does not know is passed over.
    pub guesses: bool,
    /// Whether numbers and flags may be written as texts.
    pub coerces: bool,
    pub untyped: Untyped,
    /// Whether every server is written with the word for its transport, also where that could be told without it.
    pub is_explicit: bool,
    pub both: Both,
    pub timeout: Option<TimeoutRule>,
    pub variables: VariableRule,
    /// What holds for commands, if that is something else.
    pub command_variables: Option<VariableRule>,
    /// What `env` and `headers` may hold besides texts.
    pub loose_values: bool,
    /// Whether the program itself writes every key, also those of the other transport, with nothing in them.
    pub writes_all: bool,
    /// Whether `env` may be `null`, as if it were not there.
    pub null_env: bool,
    /// Whether its reader of YAML makes a date of what looks like one, as YAML 1.1 does.
    pub dates: bool,
    /// Characters besides letters and digits that the name of a server may have; `None` if any.
    pub name_characters: Option<&'static str>,
    /// A character that names of servers had better not have.
    pub name_discouraged: Option<char>,
    /// Names that the program has for itself.
    pub reserved_names: &'static [&'static str],
    /// Schemes of URLs besides those of the transports.
    pub schemes: &'static [&'static str],
    /// Whether a server with an empty URL is passed over without a word.
    pub empty_url: bool,
    /// Whether a server without a command and a URL is described elsewhere: only switched on or off here.
    pub partial: bool,
    /// The word for the transport of a server that is described elsewhere.
    pub elsewhere_word: Option<&'static str>,
    /// The fields in which `~/` at the beginning is the home folder.
    pub home: &'static [Field],
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

/// A list of profiles, each with servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiles {
    /// The key of the list.
    pub key: &'static str,
    /// The key of the servers in each.
    pub servers: &'static str,
    /// What a server without a word for its transport is there.
    pub untyped: Untyped,
    /// Whether the file is rejected for a key of such a server that the program does not know.
    pub strict: bool,
}

/// Some of a program's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    None,
    All,
    Of(&'static [Place]),
}

/// Where lists of names of servers are: keys from the root on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameLists {
    /// Unless it is empty, no others are used.
    pub allowed: &'static [&'static str],
    pub excluded: &'static [&'static str],
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

impl Of {
    /// Whether the key is for servers of this transport.
    pub(super) fn includes(self, transport: Transport) -> bool {
        match self {
            Of::All => true,
            Of::Process { .. } => transport == Transport::Stdio,
            Of::Remote { .. } => transport != Transport::Stdio,
        }
    }
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
    /// A list of scopes.
    Scopes,
    /// A text of scopes with blanks between them.
    ScopeText,
    CallbackPort,
    MetadataUrl,
    /// An object with these keys.
    Object(&'static [Key]),
    /// Something of the program that means nothing to others.
    Own,
    /// The same, where the program takes values of this kind only.
    Setting(Kind),
}

impl Field {
    /// Whether its value is a text in which a reference is one like any other.
    pub(super) fn is_text(self) -> bool {
        !matches!(
            self,
            Field::Transport
                | Field::CommandLine
                | Field::Args
                | Field::Env
                | Field::Headers
                | Field::Timeout
                | Field::CallTimeout
                | Field::Include
                | Field::Exclude
                | Field::Enabled
                | Field::Disabled
                | Field::Trust
                | Field::AlwaysAllow
                | Field::Debug
                | Field::CallbackPort
        )
    }
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Flag,
    /// A whole number that is at least this.
    Count(u64),
    TextOrFlag,
    /// One of these words, or a whole number.
    WordOrCount(&'static [&'static str]),
    /// A text of letters, digits and blanks.
    Plain,
    Pairs,
    Object,
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
    /// Whether it has no fractions.
    pub whole: bool,
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

impl Dialect {
    /// What most programs have in common, for tables to say only what is theirs.
    const PLAIN: Dialect = Dialect {
        name: "",
        program: "",
        syntax: Syntax::Json(&[]),
        doubtful: &[],
        files: &[],
        not_in: &[],
        guest_in: &[],
        sections: &[],
        roots: &[&["mcpServers"]],
        bare: None,
        collection: Collection::Map,
        root_keys: RootKeys::Known(&[]),
        marks: &[],
        strict_files: Files::None,
        may_be_empty: false,
        defaults: None,
        switch: None,
        profiles: None,
        lone: false,
        is_linked: false,
        name_lists: None,
        projects: None,
        keys: &[],
        strict: false,
        beside: &[],
        required: &[],
        url_keys: &[],
        typed_objects: false,
        transports: &[],
        guesses: false,
        coerces: false,
        untyped: Untyped::Rejected,
        is_explicit: false,
        both: Both::Started,
        timeout: None,
        variables: VariableRule::NONE,
        command_variables: None,
        loose_values: false,
        writes_all: false,
        null_env: false,
        dates: false,
        name_characters: None,
        name_discouraged: None,
        reserved_names: &[],
        schemes: &[],
        empty_url: false,
        partial: false,
        elsewhere_word: None,
        home: &[],
        agent: false,
        policy: Policy::USUAL,
    };

    /// How long the program waits for anything that it wants of a server of which nothing is said; `None` if it has no one
    /// time for connecting, listing and calls.
    pub fn usual_timeout(&self) -> Option<Duration> {
        let is_for_all = self.keys.iter().any(|key| key.field == Field::Timeout);
        self.timeout.filter(|_| is_for_all).map(|rule| Duration::from_millis(rule.default * rule.unit))
    }
}

#[cfg(test)]
mod tests;
