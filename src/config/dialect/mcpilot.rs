//! MCPilot: a settings file as Cline had it.

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

pub(super) static DIALECT: Dialect = Dialect {
    name: "mcpilot",
    program: "MCPilot",
    syntax: Syntax::Json(&[]),
    files: &[".mcpilot.config.json", "mcpilot.config.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "command", field: Field::Command, of: Of::All },
        Key { name: "args", field: Field::Args, of: Of::All },
        Key { name: "env", field: Field::Env, of: Of::All },
        Key { name: "disabled", field: Field::Disabled, of: Of::All },
        Key { name: "timeout", field: Field::Timeout, of: Of::All },
        Key { name: "alwaysAllow", field: Field::AlwaysAllow, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio)],
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1000, least: 1, most: 3600, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Braced],
        known: &[],
        whole: true,
        places: Places::In(&[Field::Env]),
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &[],
};
