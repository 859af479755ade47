//! Zed: the section `context_servers` of its `settings.json` (its documentation, 2026).

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{config::json::LibertyKind, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "zed",
    program: "Zed",
    syntax: Syntax::Json(&[LibertyKind::Comment, LibertyKind::TrailingComma]),
    files: &["zed/settings.json", ".zed/settings.json"],
    roots: &[&["context_servers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Section,
    defaults: None,
    keys: &[
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "source", field: Field::Own, of: Of::All },
        Key { name: "enabled", field: Field::Enabled, of: Of::All },
        Key { name: "settings", field: Field::Own, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Started,
    timeout: None,
    variables: VariableRule { forms: &[], known: &[], whole: false, places: Places::Nowhere, unset: Unset::Kept },
    loose_values: false,
    name_characters: None,
    marks: &[],
};
