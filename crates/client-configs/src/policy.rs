//! What a client does where programs disagree.

use std::num::NonZeroUsize;

use serde::Deserialize;

use crate::{System, projection::Projection, slice::slice};

/// The behaviour of a program that its files do not say. Each dialect has its own; a user may want another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    pub both_filters: BothFilters,
    pub empty_filter: EmptyFilter,
    pub patterns: Patterns,
    pub naming: Naming,
    /// Whether the description of a tool names its server.
    pub describes_server: bool,
    pub duplicates: Duplicates,
    pub unreachable: Unreachable,
    pub approval: ApprovalRule,
    pub environment: Environment,
    /// How many servers it connects to at once.
    pub concurrency: NonZeroUsize,
    pub client_info: ClientInfo,
    /// Where it keeps a file with the tokens of each server, in the home folder.
    pub token_folder: Option<&'static str>,
    /// In which form its model gets the results of tools.
    pub projection: Projection,
    /// Whether only the caller ends a call of a tool, and no timeout.
    pub waits_for_tools: bool,
}

/// How a program names itself at the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ClientInfo {
    /// As this client does.
    Own,
    /// With a name, a title, and a version unless it is that of the build.
    Named { name: &'static str, title: Option<&'static str>, version: Option<&'static str> },
}

/// What happens to a tool whose name another server's tool has already. Servers count in the order of the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Duplicates {
    /// It is left out, with a warning.
    FirstWins,
    /// Nothing works until one of them goes.
    Rejected,
    /// It gets a name with its server in it.
    Qualified,
    /// It takes the name.
    LastWins,
}

/// What happens if a server cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unreachable {
    /// Nothing is done with the others either; what was opened is closed.
    Fatal,
    /// The others are used.
    Skipped,
}

/// Whether the user is asked before a call, unless the config allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalRule {
    Never,
    Always,
}

/// What a server means that lists tools to include and tools to exclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BothFilters {
    Rejected,
    /// The excluded ones are not looked at.
    IncludeWins,
    /// A tool must be included and not excluded.
    ExcludeWins,
}

/// What an empty list of tools means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EmptyFilter {
    Rejected,
    /// What it says: an empty list to include lets no tool through.
    Literal,
}

/// What names of tools in a list may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Patterns {
    Exact,
    /// `*` matches any characters.
    Globs,
    /// `*` alone matches all tools.
    Star,
}

/// The name under which a model sees a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Naming {
    /// That of the server itself.
    Bare,
    /// A template with `{server}` and `{tool}`. Characters but ASCII letters, digits, `_` and `-` become `_`.
    Qualified(&'static str),
    /// A template as for `Qualified`, with the names as they are.
    Literal(&'static str),
}

/// The environment of a server that is started, before its own variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'static"))]
pub enum Environment {
    /// That of the client.
    Inherited,
    /// What the TypeScript SDK passes on (`getDefaultEnvironment`).
    Sdk,
    /// These variables of the client's, on Windows the second ones.
    Only {
        #[serde(deserialize_with = "slice")]
        unix: &'static [&'static str],
        #[serde(deserialize_with = "slice")]
        windows: &'static [&'static str],
    },
}

const OF_SDK: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

pub(crate) const OF_SDK_ON_WINDOWS: &[&str] = &[
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "PROGRAMFILES",
];

impl Environment {
    /// The names of the client's variables that a server gets on a system; `None` if it gets all.
    pub fn names(self, system: System) -> Option<&'static [&'static str]> {
        let (unix, windows) = match self {
            Environment::Inherited => return None,
            Environment::Sdk => (OF_SDK, OF_SDK_ON_WINDOWS),
            Environment::Only { unix, windows } => (unix, windows),
        };
        Some(if system.is_windows() { windows } else { unix })
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::USUAL
    }
}

impl Policy {
    /// What most do.
    pub const USUAL: Policy = Policy {
        both_filters: BothFilters::ExcludeWins,
        empty_filter: EmptyFilter::Literal,
        patterns: Patterns::Exact,
        naming: Naming::Qualified("mcp__{server}__{tool}"),
        describes_server: false,
        duplicates: Duplicates::FirstWins,
        unreachable: Unreachable::Skipped,
        approval: ApprovalRule::Always,
        environment: Environment::Inherited,
        concurrency: NonZeroUsize::MIN.saturating_add(7),
        client_info: ClientInfo::Own,
        token_folder: None,
        projection: Projection::Canonical,
        waits_for_tools: false,
    };
}

impl Naming {
    /// The name of a tool.
    pub fn name(self, server: &str, tool: &str) -> String {
        match self {
            Naming::Bare => tool.to_owned(),
            Naming::Qualified(template) => fill(template, &safe(server), &safe(tool)),
            Naming::Literal(template) => fill(template, server, tool),
        }
    }

    /// Whether some tool of the server may have this name. Of a template with `{tool}` more than once, only what is
    /// before the first and after the last is compared.
    pub fn may_name(self, server: &str, name: &str) -> bool {
        let (template, server) = match self {
            Naming::Bare => return true,
            Naming::Qualified(template) => (template, safe(server)),
            Naming::Literal(template) => (template, server.to_owned()),
        };
        let part = |part: &str| fill(part, &server, "");
        match (template.split_once("{tool}"), template.rsplit_once("{tool}")) {
            (Some((before, _)), Some((_, after))) => {
                let (before, after) = (part(before), part(after));
                name.strip_prefix(&*before).is_some_and(|rest| rest.ends_with(&*after))
            }
            _ => name == part(template),
        }
    }
}

/// A name without characters that a model may not use.
fn safe(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// The template with both names in it. A name that looks like a part of the template stays what it is.
fn fill(template: &str, server: &str, tool: &str) -> String {
    let mut name = String::with_capacity(template.len() + server.len() + tool.len());
    let mut rest = template;
    while let Some(brace) = rest.find('{') {
        name.push_str(&rest[..brace]);
        rest = &rest[brace..];
        let part = [("{server}", server), ("{tool}", tool)].into_iter().find(|(part, _)| rest.starts_with(part));
        let (part, value) = part.unwrap_or(("{", "{"));
        name.push_str(value);
        rest = &rest[part.len()..];
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMINGS: [Naming; 7] = [
        Naming::Bare,
        Naming::Qualified("mcp__{server}__{tool}"),
        Naming::Literal("{tool}@{server}"),
        Naming::Literal("{server}::{tool}"),
        Naming::Literal("{tool}"),
        Naming::Literal("{tool}{server}{tool}"),
        Naming::Literal("{server}"),
    ];

    #[test]
    fn a_server_gets_the_variables_of_its_system() {
        let names = |system| Environment::Sdk.names(system).unwrap_or_default();
        assert!(names(System::Windows).contains(&"SYSTEMROOT") && !names(System::Windows).contains(&"HOME"));
        assert!(names(System::MacOs).contains(&"HOME") && !names(System::MacOs).contains(&"SYSTEMROOT"));
        assert_eq!(Environment::Inherited.names(System::Windows), None);
    }

    proptest! {
        #[test]
        fn a_rule_for_a_server_covers_any_tool_name(server in "[a_é]{0,4}", tool in "[a_{}é]{0,4}") {
            for naming in NAMINGS {
                prop_assert!(naming.may_name(&server, &naming.name(&server, &tool)), "{naming:?}");
            }
        }
    }

    #[test]
    fn a_server_does_not_name_what_says_another_one() {
        let may = |naming: Naming, name| naming.may_name("one", name);
        assert!(!may(NAMINGS[1], "mcp__two__x") && !may(NAMINGS[2], "x@two") && !may(NAMINGS[3], "two::x"));
        assert!(may(NAMINGS[0], "two") && may(NAMINGS[4], "two") && !may(NAMINGS[6], "two"));
        let short = Naming::Literal("aba{tool}ba");
        assert!(short.may_name("one", "ababa") && !short.may_name("one", "aba"), "nothing is used twice");
    }
}
