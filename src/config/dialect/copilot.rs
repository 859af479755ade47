//! GitHub Copilot: `mcp-config.json`, and the portable `.github/mcp.json` (read in microsoft/vscode, 2026).

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "copilot",
    program: "GitHub Copilot",
    syntax: Syntax::Json(&[]),
    files: &[".copilot/mcp-config.json", ".github/mcp.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "oauthClientId", field: Field::ClientId, of: REMOTE },
        Key { name: "tools", field: Field::Include, of: Of::All },
    ],
    transports: &[
        ("local", Transport::Stdio),
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Started,
    timeout: None,
    variables: VariableRule {
        forms: &[Form::Braced, Form::Defaulted, Form::Bare],
        known: &[],
        whole: false,
        places: Places::In(&[Field::Command, Field::Args, Field::Env, Field::Url(None), Field::Headers]),
        unset: Unset::Kept,
    },
    loose_values: true,
    name_characters: Some("-_"),
    marks: &["tools", "oauthClientId"],
};
