//! Claude Desktop: `claude_desktop_config.json` (documentation of the Model Context Protocol).

use super::{Dialect, Field, Key, Place, RootKeys, Untyped};
use crate::{
    config::policy::{Environment, Policy},
    transport::Transport,
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-desktop",
    program: "Claude Desktop",
    files: &[Place::Config("Claude/claude_desktop_config.json"), Place::Named("claude_desktop_config.json")],
    root_keys: RootKeys::Section(&["globalShortcut", "preferences"]),
    keys: &[Key::new("command", Field::Command), Key::new("args", Field::Args), Key::new("env", Field::Env)],
    transports: &[("stdio", Transport::Stdio)],
    untyped: Untyped::Process,
    policy: Policy { environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
