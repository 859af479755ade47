//! Antigravity: `mcp_config.json`. The program is closed: its files and keys are those of its documentation
//! (antigravity.google/docs/mcp) and of other programs that write its file (2026-11-23).

use super::prelude::*;

const OAUTH: &[Key] = keys! { Remote "clientId" ClientId, "clientSecret" ClientSecret };

pub(super) static DIALECT: Dialect = Dialect {
    name: "antigravity",
    program: "Antigravity",
    files: &[
        FileLocation::Project(".agents/mcp_config.json"),
        FileLocation::Home(".gemini/config/mcp_config.json"),
        FileLocation::Home(".gemini/antigravity/mcp_config.json"),
    ],
    keys: keys! {
        All "type" Own;
        Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
        Remote "serverUrl" Url(None), "url" Url(None), "headers" Headers, "authProviderType" Own, "oauth" Object(OAUTH);
        All "disabled" Disabled, "disabledTools" Exclude, "timeout" Own;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    ..Dialect::PLAIN
};
