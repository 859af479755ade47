//! MCPilot: a settings file as Cline had it, which nothing in it reads, and the section `mcp.servers` of its own config.

use super::{Dialect, Empty, Field, Key, Outside, Place, Places, RootKeys, TimeoutRule, Unset, Untyped, VariableRule};
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
    files: &[
        Place::Project(".mcpilot/.mcpilot.config.json"),
        Place::Home(".mcpilot/.mcpilot.config.json"),
        Place::Named(".mcpilot.config.json"),
        Place::Named("mcpilot.config.json"),
    ],
    roots: &[&["mcpServers"], &["mcp", "servers"]],
    root_keys: RootKeys::Known(&["providers", "session", "logging"]),
    keys: &[
        Key::new("type", Field::Transport),
        Key::new("command", Field::Command),
        Key::new("args", Field::Args),
        Key::new("env", Field::Env),
        Key::new("disabled", Field::Disabled),
        Key::new("timeout", Field::Timeout),
        Key::new("alwaysAllow", Field::AlwaysAllow),
    ],
    transports: &[("stdio", Transport::Stdio)],
    untyped: Untyped::Process,
    timeout: Some(TimeoutRule {
        unit: 1000,
        default: 60,
        least: 1,
        most: 3600,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Braced],
        whole: true,
        places: Places::In(&[Field::Env]),
        unset: Unset::Kept,
        empty: Empty::Unset,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Bare, environment: Environment::Only(&["PATH"]), ..Policy::USUAL },
    ..Dialect::PLAIN
};
