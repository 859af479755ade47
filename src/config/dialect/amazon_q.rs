//! Amazon Q Developer CLI and its successor Kiro: `mcp.json` (read in aws/amazon-q-developer-cli 1.19.7, April 2026).

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "amazon-q",
    program: "Amazon Q",
    syntax: Syntax::Json(&[]),
    files: &[".aws/amazonq/mcp.json", ".amazonq/mcp.json", ".kiro/settings/mcp.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "oauthScopes", field: Field::Scopes, of: REMOTE },
        Key { name: "oauth", field: Field::Own, of: REMOTE },
        Key { name: "timeout", field: Field::Timeout, of: Of::All },
        Key { name: "disabled", field: Field::Disabled, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &[],
        whole: false,
        places: Places::In(&[Field::Env, Field::Headers]),
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &["oauthScopes"],
};
