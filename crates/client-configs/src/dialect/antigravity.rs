//! Antigravity: `mcp_config.json`. The program is closed: its files and keys are those of its documentation
//! (antigravity.google/docs/mcp) and of other programs that write its file (2026-11-23).

use super::prelude::*;

const OAUTH: &[Key] = &[Key::remote("clientId", Field::ClientId), Key::remote("clientSecret", Field::ClientSecret)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "antigravity",
    program: "Antigravity",
    files: &[
        FileLocation::Project(".agents/mcp_config.json"),
        FileLocation::Home(".gemini/config/mcp_config.json"),
        FileLocation::Home(".gemini/antigravity/mcp_config.json"),
    ],
    keys: &[
        Key::new("type", Field::Own),
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::process("cwd", Field::Cwd),
        Key::remote("serverUrl", Field::Url(None)),
        Key::remote("url", Field::Url(None)),
        Key::remote("headers", Field::Headers),
        Key::remote("authProviderType", Field::Own),
        Key::remote("oauth", Field::Object(OAUTH)),
        Key::new("disabled", Field::Disabled),
        Key::new("disabledTools", Field::Exclude),
        Key::new("timeout", Field::Own),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    ..Dialect::PLAIN
};
