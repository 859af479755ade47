//! Gemini CLI: the section `mcpServers` of its `settings.json` (read in google-gemini/gemini-cli, August 2026).

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{
    config::{Form, json::LibertyKind},
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "gemini",
    program: "Gemini CLI",
    syntax: Syntax::Json(&[LibertyKind::Comment]),
    files: &[".gemini/settings.json", "gemini-extension.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Section,
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "httpUrl", field: Field::Url(Some(Transport::Http)), of: REMOTE },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "tcp", field: Field::Own, of: Of::All },
        Key { name: "timeout", field: Field::Timeout, of: Of::All },
        Key { name: "trust", field: Field::Trust, of: Of::All },
        Key { name: "description", field: Field::Own, of: Of::All },
        Key { name: "includeTools", field: Field::Include, of: Of::All },
        Key { name: "excludeTools", field: Field::Exclude, of: Of::All },
        Key { name: "extension", field: Field::Own, of: Of::All },
        Key { name: "oauth", field: Field::Own, of: REMOTE },
        Key { name: "authProviderType", field: Field::Own, of: REMOTE },
        Key { name: "targetAudience", field: Field::Own, of: REMOTE },
        Key { name: "targetServiceAccount", field: Field::Own, of: REMOTE },
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Dialled,
    timeout: Some(TimeoutRule { unit: 1, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced, Form::Defaulted],
        known: &[],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &["httpUrl", "authProviderType", "trust", "includeTools"],
};
