//! MCPilot: a settings file as Cline had it, which nothing in it reads, and the section `mcp.servers` of its own config.

use super::{
    Both, Collection, Dialect, Empty, Field, Key, Outside, Place, Places, RootKeys, Syntax, TimeoutRule, Unset,
    Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        policy::{Environment, Naming, Policy},
    },
    transport::Transport,
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "mcpilot",
    program: "MCPilot",
    syntax: Syntax::Json(&[]),
    files: &[
        Place::Project(".mcpilot/.mcpilot.config.json"),
        Place::Home(".mcpilot/.mcpilot.config.json"),
        Place::Named(".mcpilot.config.json"),
        Place::Named("mcpilot.config.json"),
    ],
    roots: &[&["mcpServers"], &["mcp", "servers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Known(&["providers", "session", "logging"]),
    defaults: None,
    switch: None,
    projects: None,
    keys: &[
        Key::new("type", Field::Transport),
        Key::new("command", Field::Command),
        Key::new("args", Field::Args),
        Key::new("env", Field::Env),
        Key::new("disabled", Field::Disabled),
        Key::new("timeout", Field::Timeout),
        Key::new("alwaysAllow", Field::AlwaysAllow),
    ],
    beside: &[],
    required: &[],
    transports: &[("stdio", Transport::Stdio)],
    guesses: false,
    coerces: false,
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1000, default: 60, least: 1, most: 3600, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Braced],
        known: &[],
        whole: true,
        places: Places::In(&[Field::Env]),
        unset: Unset::Kept,
        empty: Empty::Unset,
    },
    loose_values: false,
    name_characters: None,
    reserved_names: &[],
    schemes: &[],
    empty_url: false,
    partial: false,
    expands_home: false,
    agent: false,
    policy: Policy { naming: Naming::Bare, environment: Environment::Only(&["PATH"]), ..Policy::USUAL },
};
