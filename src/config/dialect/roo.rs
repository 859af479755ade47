//! Roo Code: `mcp_settings.json` and `.roo/mcp.json` (read in RooCodeInc/Roo-Code 3.52.1, April 2026); the older Kilo Code
//! has the same under `.kilocode`.

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

pub(super) static DIALECT: Dialect = Dialect {
    name: "roo",
    program: "Roo Code",
    syntax: Syntax::Json(&[]),
    files: &["mcp_settings.json", ".roo/mcp.json", ".kilocode/mcp.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "disabled", field: Field::Disabled, of: Of::All },
        Key { name: "timeout", field: Field::CallTimeout, of: Of::All },
        Key { name: "alwaysAllow", field: Field::AlwaysAllow, of: Of::All },
        Key { name: "disabledTools", field: Field::Exclude, of: Of::All },
        Key { name: "watchPaths", field: Field::Own, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("streamable-http", Transport::Http)],
    untyped: Untyped::Inferred(Transport::Sse),
    both: Both::Rejected,
    timeout: Some(TimeoutRule { unit: 1000, least: 1, most: 3600, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &["workspaceFolder"],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &["watchPaths", "alwaysAllow"],
};
