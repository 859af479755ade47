//! Junie of JetBrains: `.junie/mcp/mcp.json` (its documentation, 2026).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "junie",
    program: "Junie",
    files: &[FileLocation::Project(".junie/mcp/mcp.json"), FileLocation::Home(".junie/mcp/mcp.json")],
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    ..Dialect::PLAIN
};
