//! Dialects: how each program writes its MCP servers, and what it makes of them.
//!
//! A dialect is a table in the file of its host, from which servers are read. What programs do is in
//! `docs/config-dialects.md`. To add a dialect, add one file in `hosts/` and its name in [`HOSTS`].

mod detect;
mod host;
mod location;
mod schema;
mod section;
mod servers;
mod tables;
#[cfg(test)]
mod tests;
mod variables;

use std::{sync::LazyLock, time::Duration};

use serde::Deserialize;

pub use detect::{Detected, by_name, by_path};
pub(super) use detect::{
    detect, has_root, is_about_other_things, mark_of_file, mark_of_server, named_in, owner_of_folder, without_ending,
};
pub use host::{HOSTS, Host, KEYS, all};
pub use location::FileLocation;
pub(super) use servers::{NOTES, ServerMap, is_note, is_server, looks_like_servers};
pub use variables::{EmptyVariable, Template, UnsetVariable, VariableRule, VariableScope};
pub(super) use variables::{is_from_home, kind, variable_of_windows};

use super::{policy::Policy, slice::slice};
use rehearse_document::json::SyntaxExtensionKind;
use rehearse_protocol::Transport;

/// The dialect of the environment variables that name servers and files of servers.
pub(super) static VARIABLES_DIALECT: LazyLock<&Dialect> =
    LazyLock::new(|| by_name("code_agent").unwrap_or_else(|| Box::leak(Box::default())));

/// How a program writes its servers. `keys.txt` says what each member means.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Dialect {
    pub name: &'static str,
    pub program: &'static str,
    pub syntax: Syntax,
    #[serde(deserialize_with = "slice")]
    pub undocumented_syntax: &'static [SyntaxExtensionKind],
    #[serde(deserialize_with = "slice")]
    pub files: &'static [FileLocation],
    #[serde(deserialize_with = "slice")]
    pub files_without_servers: &'static [FileLocation],
    #[serde(deserialize_with = "slice")]
    pub folders_without_files: &'static [&'static str],
    #[serde(deserialize_with = "slice")]
    pub also_reads: &'static [FileLocation],
    #[serde(deserialize_with = "tables::paths")]
    pub sections: &'static [&'static [&'static str]],
    #[serde(default = "tables::usual_roots", deserialize_with = "tables::paths")]
    pub roots: &'static [&'static [&'static str]],
    pub bare_map_note: Option<&'static str>,
    pub collection: Collection,
    pub root_keys: RootKeys,
    #[serde(deserialize_with = "slice")]
    pub signature_references: &'static [&'static str],
    pub strict_files: Files,
    pub may_be_empty: bool,
    #[serde(deserialize_with = "tables::some_path")]
    pub defaults: Option<&'static [&'static str]>,
    pub global_enable_key: Option<&'static str>,
    pub profiles: Option<Profiles>,
    pub single_server_file: bool,
    pub links_to_file: bool,
    pub name_lists: Option<NameLists>,
    pub projects: Option<&'static str>,
    #[serde(deserialize_with = "tables::keys")]
    pub keys: &'static [Key],
    pub rejects_unknown_keys: bool,
    pub rejects_misplaced_keys: bool,
    #[serde(deserialize_with = "slice")]
    pub companions: &'static [Companion],
    #[serde(deserialize_with = "slice")]
    pub required_keys: &'static [&'static str],
    #[serde(deserialize_with = "slice")]
    pub url_keys: &'static [(&'static str, &'static str)],
    pub typed_objects: bool,
    #[serde(deserialize_with = "slice")]
    pub transports: &'static [(&'static str, Transport)],
    pub ignores_unknown_transport: bool,
    pub coerces_scalars: bool,
    pub when_type_missing: MissingType,
    pub is_explicit: bool,
    pub when_both_given: CommandAndUrl,
    pub timeout: Option<TimeoutRule>,
    pub variables: VariableRule,
    pub command_variables: Option<VariableRule>,
    pub loose_values: bool,
    pub empty_is_absent: bool,
    pub empty_type_is_absent: bool,
    pub null_env: bool,
    pub name_characters: Option<&'static str>,
    pub name_discouraged: Option<char>,
    #[serde(deserialize_with = "slice")]
    pub reserved_names: &'static [&'static str],
    #[serde(deserialize_with = "slice")]
    pub schemes: &'static [&'static str],
    pub ignores_empty_url: bool,
    #[serde(deserialize_with = "tables::some_path")]
    pub url_list: Option<&'static [&'static str]>,
    pub allows_partial_server: bool,
    pub elsewhere_word: Option<&'static str>,
    #[serde(deserialize_with = "slice")]
    pub expands_home_in: &'static [Field],
    pub is_desktop: bool,
    pub batch_files: BatchFiles,
    pub policy: Policy,
    pub describes_agent: bool,
    #[serde(deserialize_with = "tables::lists")]
    pub root_marks: &'static [&'static [&'static str]],
    #[serde(deserialize_with = "slice")]
    pub server_marks: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Syntax {
    /// JSON with these extensions.
    Json(#[serde(deserialize_with = "slice")] &'static [SyntaxExtensionKind]),
    /// YAML 1.2; strict JSON if the file's name says so.
    Yaml,
    JsonOrYaml,
    Toml,
}

/// How servers get their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Collection {
    /// `{ name: { … } }`
    #[default]
    Map,
    /// `[{ name: …, … }]`. An item with the key `elsewhere` refers to a server that is defined elsewhere.
    List { elsewhere: Option<&'static str> },
}

/// A list of profiles, each with servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profiles {
    /// The key of the list.
    pub key: &'static str,
    /// The key of the servers in each.
    pub servers: &'static str,
    pub when_type_missing: MissingType,
    pub rejects_unknown_keys: bool,
}

/// Some of a program's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'static"))]
pub enum Files {
    #[default]
    None,
    All,
    These(#[serde(deserialize_with = "slice")] &'static [FileLocation]),
}

/// Where lists of names of servers are: keys from the root on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub struct NameLists {
    /// Unless it is empty, no others are used.
    #[serde(deserialize_with = "tables::path")]
    pub allowed: &'static [&'static str],
    #[serde(deserialize_with = "tables::path")]
    pub excluded: &'static [&'static str],
}

/// A key beside the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Companion {
    pub key: &'static str,
    pub value: &'static str,
    /// Whether the program rejects a file without it.
    pub required: bool,
}

/// The keys beside the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'static"))]
pub enum RootKeys {
    /// These; any other is ignored.
    Known(#[serde(deserialize_with = "slice")] &'static [&'static str]),
    /// The servers are one section of a file about other things; these are some of its other keys.
    Section(#[serde(deserialize_with = "slice")] &'static [&'static str]),
}

/// A key of a server, or of an object in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub field: Field,
    pub applies_to: AppliesTo,
}

/// The servers that a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
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
    Object(#[serde(deserialize_with = "tables::keys")] &'static [Key]),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'static"))]
pub enum SettingType {
    Text,
    Flag,
    /// A whole number that is at least this.
    Count(u64),
    TextOrFlag,
    /// One of these words, or a whole number.
    WordOrCount(#[serde(deserialize_with = "slice")] &'static [&'static str]),
    /// A string of letters, digits and spaces.
    Plain,
    Pairs,
    Object,
}

/// The transport of a server without `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingType {
    /// An error.
    #[default]
    Rejected,
    /// Local if it has a command; a URL alone is an error.
    Process,
    /// Local if it has a command; otherwise this transport, unless the key of the URL names another.
    Inferred(Transport),
}

/// The transport of a server with a command and a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandAndUrl {
    Rejected,
    /// Local, unless `type` says otherwise.
    #[default]
    Process,
    /// Remote, unless `type` says otherwise.
    Remote,
}

/// How a program starts batch files of Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BatchFiles {
    /// As other programs, or it is not known.
    #[default]
    Started,
    /// With `cmd /c`, which replaces `%NAME%` in the command and its arguments.
    ByCmd,
    /// In some versions only.
    Unreliable,
}

/// How a program reads a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutOfRange {
    Rejected,
    /// The nearest one in range is used.
    Clamped,
    Ignored,
}

impl Default for TimeoutRule {
    fn default() -> TimeoutRule {
        TimeoutRule { unit: 1, least: 0, most: u64::MAX, whole: false, outside: OutOfRange::Rejected, default: 0 }
    }
}

impl Default for Syntax {
    fn default() -> Syntax {
        Syntax::Json(&[])
    }
}

impl Default for RootKeys {
    fn default() -> RootKeys {
        RootKeys::Known(&[])
    }
}

impl Dialect {
    /// The default timeout for connecting, listing and requests; `None` if the program has no single one.
    pub fn usual_timeout(&self) -> Option<Duration> {
        let is_for_calls_alone = self.keys.iter().any(|key| key.field == Field::CallTimeout);
        self.timeout.filter(|_| !is_for_calls_alone).map(|rule| Duration::from_millis(rule.default * rule.unit))
    }
}
