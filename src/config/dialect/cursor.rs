//! Cursor: `.cursor/mcp.json` (its documentation of 2026); LM Studio reads the same.

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{
    config::{Form, json::LibertyKind},
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const AUTH: &[Key] = &[
    Key { name: "CLIENT_ID", field: Field::ClientId, of: Of::All },
    Key { name: "CLIENT_SECRET", field: Field::ClientSecret, of: Of::All },
    Key { name: "scopes", field: Field::Scopes, of: Of::All },
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "cursor",
    program: "Cursor",
    // Nobody documents comments, and people write them without complaint.
    syntax: Syntax::Json(&[LibertyKind::Comment]),
    files: &[".cursor/mcp.json", ".lmstudio/mcp.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "envFile", field: Field::EnvFile, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "auth", field: Field::Object(AUTH), of: REMOTE },
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamableHttp", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Started,
    timeout: None,
    variables: VariableRule {
        forms: &[Form::Env],
        known: &["userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Unknown,
    },
    loose_values: false,
    name_characters: None,
    marks: &["envFile", "auth"],
};
