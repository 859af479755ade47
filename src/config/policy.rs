//! What a client does where programs disagree.

/// The behaviour of a program that its files do not say. Each dialect has its own; a user may want another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub both_filters: BothFilters,
    pub empty_filter: EmptyFilter,
    pub patterns: Patterns,
    pub naming: Naming,
    pub environment: Environment,
}

/// What a server means that lists tools to include and tools to exclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BothFilters {
    Rejected,
    /// The excluded ones are not looked at.
    IncludeWins,
    /// A tool must be included and not excluded.
    ExcludeWins,
}

/// What an empty list of tools means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyFilter {
    Rejected,
    /// What it says: an empty list to include lets no tool through.
    Literal,
}

/// What names of tools in a list may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patterns {
    Exact,
    /// `*` stands for any characters.
    Globs,
    /// `*` alone stands for all tools.
    Star,
}

/// The name under which a model sees a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// That of the server itself.
    Bare,
    /// A template with `{server}` and `{tool}`. Characters but ASCII letters, digits, `_` and `-` become `_`.
    Qualified(&'static str),
}

/// The environment of a server that is started, before its own variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// That of the client.
    Inherited,
    /// These variables of the client's.
    Only(&'static [&'static str]),
}

impl Environment {
    /// What the TypeScript SDK passes on (`getDefaultEnvironment`).
    pub const SDK: Environment = Environment::Only(&["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"]);
}

impl Policy {
    /// What most do.
    pub const USUAL: Policy = Policy {
        both_filters: BothFilters::ExcludeWins,
        empty_filter: EmptyFilter::Literal,
        patterns: Patterns::Exact,
        naming: Naming::Qualified("mcp__{server}__{tool}"),
        environment: Environment::Inherited,
    };
}

impl Naming {
    /// The name of a tool.
    pub fn name(self, server: &str, tool: &str) -> String {
        match self {
            Naming::Bare => tool.to_owned(),
            Naming::Qualified(template) => {
                let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
                let safe = |text: &str| text.chars().map(plain).collect::<String>();
                template.replace("{server}", &safe(server)).replace("{tool}", &safe(tool))
            }
        }
    }
}
