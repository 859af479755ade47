//! MCPilot: a settings file as Cline had it.

use super::{
    Both, Collection, Dialect, Field, Key, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped, VariableRule,
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
    files: &[".mcpilot.config.json", "mcpilot.config.json"],
    roots: &[&["mcpServers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key::new("command", Field::Command),
        Key::new("args", Field::Args),
        Key::new("env", Field::Env),
        Key::new("disabled", Field::Disabled),
        Key::new("timeout", Field::Timeout),
        Key::new("alwaysAllow", Field::AlwaysAllow),
    ],
    required: &[],
    transports: &[("stdio", Transport::Stdio)],
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1000, least: 1, most: 3600, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Braced],
        known: &[],
        whole: true,
        places: Places::In(&[Field::Env]),
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    reserved_names: &[],
    schemes: &[],
    expands_home: false,
    agent: false,
    policy: Policy { naming: Naming::Bare, environment: Environment::Only(&["PATH"]), ..Policy::USUAL },
};
