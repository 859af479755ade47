//! Windsurf: `mcp_config.json` (its documentation of 2026).

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "windsurf",
    program: "Windsurf",
    syntax: Syntax::Json(&[]),
    files: &["mcp_config.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "serverUrl", field: Field::Url(None), of: REMOTE },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "disabled", field: Field::Disabled, of: Of::All },
        Key { name: "disabledTools", field: Field::Exclude, of: Of::All },
        Key { name: "alwaysAllow", field: Field::AlwaysAllow, of: Of::All },
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Started,
    timeout: None,
    variables: VariableRule {
        forms: &[Form::Env],
        known: &[],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Empty,
    },
    loose_values: false,
    name_characters: None,
    marks: &["serverUrl"],
};
