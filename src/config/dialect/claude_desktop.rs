//! Claude Desktop: `claude_desktop_config.json` (documentation of the Model Context Protocol).

use super::{
    Both, Collection, Dialect, Empty, Field, Key, Place, Places, RootKeys, Syntax, Unset, Untyped, VariableRule,
};
use crate::{
    config::policy::{Environment, Policy},
    transport::Transport,
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-desktop",
    program: "Claude Desktop",
    syntax: Syntax::Json(&[]),
    files: &[Place::Config("Claude/claude_desktop_config.json"), Place::Named("claude_desktop_config.json")],
    roots: &[&["mcpServers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Section(&["globalShortcut", "preferences"]),
    defaults: None,
    switch: None,
    projects: None,
    keys: &[Key::new("command", Field::Command), Key::new("args", Field::Args), Key::new("env", Field::Env)],
    beside: &[],
    required: &[],
    transports: &[("stdio", Transport::Stdio)],
    guesses: false,
    coerces: false,
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: None,
    variables: VariableRule {
        forms: &[],
        known: &[],
        whole: false,
        places: Places::Nowhere,
        unset: Unset::Kept,
        empty: Empty::Nothing,
    },
    loose_values: false,
    name_characters: None,
    reserved_names: &[],
    schemes: &[],
    empty_url: false,
    partial: false,
    expands_home: false,
    agent: false,
    policy: Policy { environment: Environment::SDK, ..Policy::USUAL },
};
