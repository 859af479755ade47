//! Claude Desktop: `claude_desktop_config.json` (documentation of the Model Context Protocol).

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::transport::Transport;

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-desktop",
    program: "Claude Desktop",
    syntax: Syntax::Json(&[]),
    files: &["claude_desktop_config.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Section,
    defaults: None,
    keys: &[
        Key { name: "command", field: Field::Command, of: Of::All },
        Key { name: "args", field: Field::Args, of: Of::All },
        Key { name: "env", field: Field::Env, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio)],
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: None,
    variables: VariableRule { forms: &[], known: &[], whole: false, places: Places::Nowhere, unset: Unset::Kept },
    loose_values: false,
    name_characters: None,
    marks: &["globalShortcut"],
};
