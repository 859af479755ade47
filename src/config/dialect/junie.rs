//! Junie of JetBrains: `.junie/mcp/mcp.json` (its documentation, 2026).

use super::{Dialect, Field, Key, Of, Place, Untyped};
use crate::transport::Transport;

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "junie",
    program: "Junie",
    files: &[Place::Project(".junie/mcp/mcp.json"), Place::Home(".junie/mcp/mcp.json")],
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Inferred(Transport::Http),
    ..Dialect::PLAIN
};
