//! Junie of JetBrains: `.junie/mcp/mcp.json` (its documentation, 2026).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "junie",
    program: "Junie",
    files: &[FileLocation::Project(".junie/mcp/mcp.json"), FileLocation::Home(".junie/mcp/mcp.json")],
    keys: &[
        Key::new("type", Field::Transport),
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::remote("url", Field::Url(None)),
        Key::remote("headers", Field::Headers),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    ..Dialect::PLAIN
};
