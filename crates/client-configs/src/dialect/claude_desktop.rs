//! Claude Desktop: `claude_desktop_config.json` (documentation of the Model Context Protocol).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-desktop",
    program: "Claude Desktop",
    files: &[
        FileLocation::Config("Claude/claude_desktop_config.json"),
        FileLocation::Named("claude_desktop_config.json"),
    ],
    root_keys: RootKeys::Section(&["globalShortcut", "preferences"]),
    is_desktop: true,
    keys: &[Key::new("command", Field::Command), Key::new("args", Field::Args), Key::new("env", Field::Env)],
    transports: &[("stdio", Transport::Stdio)],
    when_type_missing: MissingType::Process,
    policy: Policy { environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
