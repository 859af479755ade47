//! Cursor: `.cursor/mcp.json` (its documentation of 2026); LM Studio reads the same.

use super::{Dialect, Empty, Field, Key, Of, Place, Places, Syntax, Unset, Untyped, VariableRule};
use crate::{
    config::{Form, json::LibertyKind},
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const AUTH: &[Key] = &[
    Key::new("CLIENT_ID", Field::ClientId),
    Key::new("CLIENT_SECRET", Field::ClientSecret),
    Key::new("scopes", Field::Scopes),
];

const DOUBTFUL: &[LibertyKind] = &[LibertyKind::Comment, LibertyKind::TrailingComma];

pub(super) static DIALECT: Dialect = Dialect {
    name: "cursor",
    program: "Cursor",
    // Nobody documents either, and people write them without complaint.
    syntax: Syntax::Json(DOUBTFUL),
    doubtful: DOUBTFUL,
    files: &[
        Place::Project(".cursor/mcp.json"),
        Place::Home(".cursor/mcp.json"),
        // LM Studio reads what Cursor writes.
        Place::Home(".lmstudio/mcp.json"),
    ],
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("envFile", Field::EnvFile, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("auth", Field::Object(AUTH), REMOTE),
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamableHttp", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    untyped: Untyped::Inferred(Transport::Http),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &["userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"],
        places: Places::Everywhere,
        unset: Unset::Unknown,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    ..Dialect::PLAIN
};
