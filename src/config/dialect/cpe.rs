//! CPE: YAML (or JSON) with models, defaults, and the servers under `mcpServers`.

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

pub(super) static DIALECT: Dialect = Dialect {
    name: "cpe",
    program: "CPE",
    syntax: Syntax::Yaml,
    files: &["cpe.yaml", "cpe.yml", "cpe/cpe.yaml", "cpe/cpe.yml"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Section,
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "timeout", field: Field::Timeout, of: Of::All },
        Key { name: "enabledTools", field: Field::Include, of: Of::All },
        Key { name: "disabledTools", field: Field::Exclude, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Rejected,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1000, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced],
        known: &[],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Empty,
    },
    loose_values: false,
    name_characters: None,
    marks: &["models", "subagent", "defaults", "enabledTools"],
};
