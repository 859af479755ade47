//! Dialects: how each program writes its MCP servers, and what it makes of them.
//!
//! A dialect is a table, one file each, from which servers are read. What programs do is in `docs/config-dialects.md`.
//! To add a dialect, add one file and one line in [`ALL`].

mod amazon_q;
mod antigravity;
mod claude_code;
mod claude_desktop;
mod cline;
mod code_agent;
mod codex;
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
mod location;
mod mcpilot;
mod opencode;
mod qwen;
mod roo;
mod schema;
mod section;
mod servers;
#[cfg(test)]
mod tests;
mod variables;
mod vscode;
mod windsurf;
mod zed;

use std::time::Duration;

pub use detect::{Detected, by_name, by_path};
pub(super) use detect::{
    detect, is_about_other_things, mark_of_file, mark_of_server, named_in, owner_of_folder, readers, without_ending,
};
pub use location::FileLocation;
pub(super) use servers::ServerMap;
pub use variables::{EmptyVariable, Template, UnsetVariable, VariableRule, VariableScope};
pub(super) use variables::{is_from_home, kind, variable_of_windows};

use super::policy::Policy;
use rehearse_document::json::SyntaxExtensionKind;
use rehearse_protocol::Transport;

/// Every dialect. Of those that read a file equally well, the first is taken.
pub static ALL: &[&Dialect] = &[
    &claude_code::DIALECT,
    &claude_desktop::DIALECT,
    &vscode::DIALECT,
    &copilot::DIALECT,
    &cursor::DIALECT,
    &cline::DIALECT,
    &roo::DIALECT,
    &antigravity::DIALECT,
    &windsurf::DIALECT,
    &gemini::DIALECT,
    &qwen::DIALECT,
    &amazon_q::DIALECT,
    &kiro::DIALECT,
    &engine::DIALECT,
    &cpe::DIALECT,
    &cpe::LENIENT,
    &code_agent::DIALECT,
    &mcpilot::DIALECT,
    &opencode::DIALECT,
    &zed::DIALECT,
    &librechat::DIALECT,
    &continue_dev::DIALECT,
    &continue_json::DIALECT,
    &junie::DIALECT,
    &codex::DIALECT,
];

/// The dialect of the environment variables that name servers and files of servers.
pub(super) static VARIABLES_DIALECT: &Dialect = &code_agent::DIALECT;

/// What the tables use.
mod prelude {
    /// Keys, by the servers that they are for: `Process "command" Command, "args" Args; Remote "url" Url(None);`.
    macro_rules! keys {
        ($($servers:ident $($name:literal $field:ident $(($of:expr))?),+);* $(;)?) => {
            &[$($(Key { name: $name, field: Field::$field $(($of))?, applies_to: AppliesTo::$servers }),+),*]
        };
    }

    pub(super) use super::{
        AppliesTo, BatchFiles, Collection, CommandAndUrl, Companion, Dialect, EmptyVariable, Field, FileLocation,
        Files, Key, MissingType, NameLists, OutOfRange, Profiles, RootKeys, SettingType, Syntax, Template, TimeoutRule,
        UnsetVariable, VariableRule, VariableScope,
    };
    pub(super) use crate::policy::{
        ApprovalRule, BothFilters, ClientInfo, Duplicates, EmptyFilter, Environment, Naming, Patterns, Policy,
        Unreachable,
    };
    pub(super) use crate::projection::Projection;
    pub(super) use keys;
    pub(super) use rehearse_document::{Form, json::SyntaxExtensionKind};
    pub(super) use rehearse_protocol::Transport;
    pub(super) use std::num::NonZeroUsize;
}

/// How a program writes its servers.
#[derive(Debug)]
pub struct Dialect {
    /// As the user types it: `claude-code`.
    pub name: &'static str,
    /// The program that owns the format.
    pub program: &'static str,
    pub syntax: Syntax,
    /// Syntax extensions that it accepts but does not document.
    pub undocumented_syntax: &'static [SyntaxExtensionKind],
    /// Its files. Of two for the same servers, the program prefers the first; all of a project come before the user's.
    pub files: &'static [FileLocation],
    /// Those of its files in which it looks for no servers, although people put them there.
    pub files_without_servers: &'static [FileLocation],
    /// Files of other programs that it reads as well.
    pub also_reads: &'static [FileLocation],
    /// Where all of this is in a file about other things: keys from the root on.
    pub sections: &'static [&'static [&'static str]],
    /// Where the servers are: keys from the root on. The first that exists is read; the first of all is written.
    pub roots: &'static [&'static [&'static str]],
    /// Whether a file may be nothing but the servers, and if so, what is wrong with that.
    pub bare_map_note: Option<&'static str>,
    pub collection: Collection,
    /// The other keys beside the servers.
    pub root_keys: RootKeys,
    /// References that only this program replaces: how their names begin.
    pub signature_references: &'static [&'static str],
    /// Which files it rejects for an unknown key beside the servers.
    pub strict_files: Files,
    /// Whether a file may be without the key for servers, as long as it has only known keys.
    pub may_be_empty: bool,
    /// Where the values are that apply to every server without a value of its own.
    pub defaults: Option<&'static [&'static str]>,
    /// The key beside the servers that turns all of them off when it is false.
    pub global_enable_key: Option<&'static str>,
    /// Profiles with servers of their own, of which one is used at a time.
    pub profiles: Option<Profiles>,
    /// Whether a file may be one server, with the name of the file.
    pub single_server_file: bool,
    /// Whether the value may be a path to another file instead, or an array of such paths and of servers.
    pub links_to_file: bool,
    /// Lists of the servers that are used and of those that are not.
    pub name_lists: Option<NameLists>,
    /// The key of an object with a config for each project of the user, by the path of its folder.
    pub projects: Option<&'static str>,
    /// The keys of a server.
    pub keys: &'static [Key],
    /// Whether it rejects a file for an unknown key of a server.
    pub rejects_unknown_keys: bool,
    /// Whether it rejects a file for a key that is for the other kind of server.
    pub rejects_misplaced_keys: bool,
    /// Other keys of the file, and the value that is written if there is none.
    pub companions: &'static [Companion],
    /// Keys that a local server needs besides its command.
    pub required_keys: &'static [&'static str],
    /// Words for transports, each with the only key that its URL may have.
    pub url_keys: &'static [(&'static str, &'static str)],
    /// Whether an object in a server that has a key for the transport must have it.
    pub typed_objects: bool,
    /// The words for transports. The first word for a transport is written; if a word has several, the URL decides.
    pub transports: &'static [(&'static str, Transport)],
    pub ignores_unknown_transport: bool,
    /// Whether numbers and booleans may be strings.
    pub coerces_scalars: bool,
    pub when_type_missing: MissingType,
    /// Whether every server is written with the word for its transport.
    pub is_explicit: bool,
    pub when_both_given: CommandAndUrl,
    pub timeout: Option<TimeoutRule>,
    pub variables: VariableRule,
    /// The rule for commands, if it is another.
    pub command_variables: Option<VariableRule>,
    /// Whether `env` and `headers` may have values that are not strings.
    pub loose_values: bool,
    /// Whether an empty value of a key for the other kind of server is as good as none; an empty object only if the
    /// program does not reject such keys.
    pub empty_is_absent: bool,
    /// Whether an empty word for the transport is as good as none.
    pub empty_type_is_absent: bool,
    /// Whether `env` may be `null`.
    pub null_env: bool,
    /// Characters besides letters and digits that the name of a server may have; `None` if any.
    pub name_characters: Option<&'static str>,
    /// A character that names of servers should not have.
    pub name_discouraged: Option<char>,
    pub reserved_names: &'static [&'static str],
    /// URL schemes besides those of the transports.
    pub schemes: &'static [&'static str],
    /// Whether a server with an empty URL is silently ignored.
    pub ignores_empty_url: bool,
    /// Whether a server without a command and a URL is defined elsewhere: only switched on or off here.
    pub allows_partial_server: bool,
    /// The word for the transport of a server that is defined elsewhere.
    pub elsewhere_word: Option<&'static str>,
    /// The fields in which a leading `~/` is the home folder.
    pub expands_home_in: &'static [Field],
    /// Whether it is started from the desktop, with no project folder as its working directory.
    pub is_desktop: bool,
    /// How it starts batch files of Windows, such as `npx.cmd`.
    pub batch_files: BatchFiles,
    pub policy: Policy,
    /// Whether the file describes an agent as well: `models`, `defaults`, `subagent`.
    pub describes_agent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON with these extensions.
    Json(&'static [SyntaxExtensionKind]),
    /// YAML 1.2; strict JSON if the file's name says so.
    Yaml,
    JsonOrYaml,
    Toml,
}

/// How servers get their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// `{ name: { … } }`
    Map,
    /// `[{ name: …, … }]`. An item with the key `elsewhere` refers to a server that is defined elsewhere.
    List { elsewhere: Option<&'static str> },
}

/// A list of profiles, each with servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profiles {
    /// The key of the list.
    pub key: &'static str,
    /// The key of the servers in each.
    pub servers: &'static str,
    pub when_type_missing: MissingType,
    pub rejects_unknown_keys: bool,
}

/// Some of a program's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    None,
    All,
    These(&'static [FileLocation]),
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
pub struct Companion {
    pub key: &'static str,
    pub value: &'static str,
    /// Whether the program rejects a file without it.
    pub required: bool,
}

/// The keys beside the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKeys {
    /// These; any other is ignored.
    Known(&'static [&'static str]),
    /// The servers are one section of a file about other things; these are some of its other keys.
    Section(&'static [&'static str]),
}

/// A key of a server, or of an object in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub field: Field,
    pub applies_to: AppliesTo,
}

/// The servers that a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliesTo {
    All,
    Process,
    Remote,
}

impl AppliesTo {
    pub(super) fn includes(self, transport: Transport) -> bool {
        match self {
            AppliesTo::All => true,
            AppliesTo::Process => transport == Transport::Stdio,
            AppliesTo::Remote => transport != Transport::Stdio,
        }
    }
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Name,
    Transport,
    Command,
    /// An array with the command and its arguments.
    CommandLine,
    Args,
    Env,
    EnvFile,
    Cwd,
    /// A URL; its key may say the transport.
    Url(Option<Transport>),
    Headers,
    /// For connecting, listing and calls.
    Timeout,
    /// For a call only.
    CallTimeout,
    /// For connecting and listing only.
    StartTimeout,
    /// For calls of single tools: an object of timeouts by the name of the tool.
    ToolTimeouts,
    Include,
    Exclude,
    Enabled,
    Disabled,
    Trust,
    AlwaysAllow,
    Debug,
    /// The kind of token: `bearer`, `api_key`, or another.
    AuthKind,
    /// A token, by default for `Authorization: Bearer`.
    Bearer,
    /// A token for which the program rejects the file, and the key for the variable with it.
    RejectedBearer(&'static str),
    ClientId,
    ClientSecret,
    /// An array of scopes.
    Scopes,
    /// Scopes in one string, separated by spaces.
    ScopeText,
    CallbackPort,
    MetadataUrl,
    /// An object with these keys.
    Object(&'static [Key]),
    /// A setting that only this program has.
    Own,
    /// The same, with values of this kind only.
    Setting(SettingType),
}

impl Field {
    /// Whether it says which servers or tools are on.
    pub(crate) fn is_switch(self) -> bool {
        matches!(self, Field::Enabled | Field::Disabled | Field::Include | Field::Exclude)
    }

    /// Whether its value is a string in which references are replaced.
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
                | Field::StartTimeout
                | Field::ToolTimeouts
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

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    Text,
    Flag,
    /// A whole number that is at least this.
    Count(u64),
    TextOrFlag,
    /// One of these words, or a whole number.
    WordOrCount(&'static [&'static str]),
    /// A string of letters, digits and spaces.
    Plain,
    Pairs,
    Object,
}

/// The transport of a server without `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingType {
    /// An error.
    Rejected,
    /// Local if it has a command; a URL alone is an error.
    Process,
    /// Local if it has a command; otherwise this transport, unless the key of the URL names another.
    Inferred(Transport),
}

/// The transport of a server with a command and a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandAndUrl {
    Rejected,
    /// Local, unless `type` says otherwise.
    Process,
    /// Remote, unless `type` says otherwise.
    Remote,
}

/// How a program starts batch files of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFiles {
    /// As other programs, or it is not known.
    Started,
    /// With `cmd /c`, which replaces `%NAME%` in the command and its arguments.
    ByCmd,
    /// In some versions only.
    Unreliable,
}

/// How a program reads a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutRule {
    /// The milliseconds of one unit.
    pub unit: u64,
    /// The range, in the unit.
    pub least: u64,
    pub most: u64,
    /// Whether it must be a whole number.
    pub whole: bool,
    pub outside: OutOfRange,
    pub default: u64,
}

/// What a program does with a timeout out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfRange {
    Rejected,
    /// The nearest one in range is used.
    Clamped,
    Ignored,
}

impl TimeoutRule {
    const MILLISECONDS: TimeoutRule =
        TimeoutRule { unit: 1, least: 0, most: u64::MAX, whole: false, outside: OutOfRange::Rejected, default: 0 };
    const SECONDS: TimeoutRule = TimeoutRule { unit: 1000, ..TimeoutRule::MILLISECONDS };
}

impl Dialect {
    /// What most programs have in common, so that tables say only what differs.
    const PLAIN: Dialect = Dialect {
        name: "",
        program: "",
        syntax: Syntax::Json(&[]),
        undocumented_syntax: &[],
        files: &[],
        files_without_servers: &[],
        also_reads: &[],
        sections: &[],
        roots: &[&["mcpServers"]],
        bare_map_note: None,
        collection: Collection::Map,
        root_keys: RootKeys::Known(&[]),
        signature_references: &[],
        strict_files: Files::None,
        may_be_empty: false,
        defaults: None,
        global_enable_key: None,
        profiles: None,
        single_server_file: false,
        links_to_file: false,
        name_lists: None,
        projects: None,
        keys: &[],
        rejects_unknown_keys: false,
        rejects_misplaced_keys: false,
        companions: &[],
        required_keys: &[],
        url_keys: &[],
        typed_objects: false,
        transports: &[],
        ignores_unknown_transport: false,
        coerces_scalars: false,
        when_type_missing: MissingType::Rejected,
        is_explicit: false,
        when_both_given: CommandAndUrl::Process,
        timeout: None,
        variables: VariableRule::NONE,
        command_variables: None,
        loose_values: false,
        empty_is_absent: false,
        empty_type_is_absent: false,
        null_env: false,
        name_characters: None,
        name_discouraged: None,
        reserved_names: &[],
        schemes: &[],
        ignores_empty_url: false,
        allows_partial_server: false,
        elsewhere_word: None,
        expands_home_in: &[],
        is_desktop: false,
        batch_files: BatchFiles::Started,
        describes_agent: false,
        policy: Policy::USUAL,
    };

    /// The default timeout for connecting, listing and requests; `None` if the program has no single one.
    pub fn usual_timeout(&self) -> Option<Duration> {
        let is_for_calls_alone = self.keys.iter().any(|key| key.field == Field::CallTimeout);
        self.timeout.filter(|_| !is_for_calls_alone).map(|rule| Duration::from_millis(rule.default * rule.unit))
    }
}
