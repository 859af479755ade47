//! Windsurf: `mcp_config.json` (its documentation of 2026).

use super::{Dialect, Empty, Field, Key, Of, Place, Places, Template, Unset, Untyped, VariableRule};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "windsurf",
    program: "Windsurf",
    files: &[
        Place::Home(".codeium/windsurf/mcp_config.json"),
        Place::Home(".codeium/mcp_config.json"),
        Place::Named("mcp_config.json"),
    ],
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("serverUrl", Field::Url(None), REMOTE),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("disabled", Field::Disabled),
        Key::new("disabledTools", Field::Exclude),
        Key::new("alwaysAllow", Field::AlwaysAllow),
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    untyped: Untyped::Inferred(Transport::Http),
    variables: VariableRule {
        forms: &[Form::Env],
        places: Places::Everywhere,
        unset: Unset::Empty,
        empty: Empty::Nothing,
        template: Some(Template { open: "${file:", close: "}", prefix: "", described: None }),
        ..VariableRule::NONE
    },
    ..Dialect::PLAIN
};
