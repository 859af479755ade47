//! code_agent: JSON with the servers under `mcp.servers`, and what holds for all of them under `mcp.globalSettings`.

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

pub(super) static DIALECT: Dialect = Dialect {
    name: "code_agent",
    program: "code_agent",
    syntax: Syntax::Json(&[]),
    files: &[".code_agent/config.json"],
    roots: &[&["mcp", "servers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Section,
    defaults: Some(&["mcp", "globalSettings"]),
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "url", field: Field::Url(Some(Transport::Sse)), of: REMOTE },
        Key { name: "httpUrl", field: Field::Url(Some(Transport::Http)), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "timeout", field: Field::Timeout, of: Of::All },
        Key { name: "trust", field: Field::Trust, of: Of::All },
        Key { name: "includeTools", field: Field::Include, of: Of::All },
        Key { name: "excludeTools", field: Field::Exclude, of: Of::All },
        Key { name: "debug", field: Field::Debug, of: Of::All },
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
        ("streamable", Transport::Http),
    ],
    untyped: Untyped::Inferred(Transport::Sse),
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Braced],
        known: &[],
        whole: false,
        places: Places::In(&[Field::Headers, Field::Args, Field::Env]),
        unset: Unset::Rejected,
    },
    loose_values: false,
    name_characters: None,
    marks: &[],
};
