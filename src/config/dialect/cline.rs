//! Cline: `cline_mcp_settings.json` (read in cline/cline 4.1.13, August 2026).

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const CLIENT: &[Key] = &[
    Key { name: "clientId", field: Field::ClientId, of: Of::All },
    Key { name: "clientSecret", field: Field::ClientSecret, of: Of::All },
];

/// What `cline mcp add` writes: the connection in an object of its own.
const NESTED: &[Key] = &[
    Key { name: "type", field: Field::Transport, of: Of::All },
    Key { name: "command", field: Field::Command, of: PROCESS },
    Key { name: "args", field: Field::Args, of: PROCESS },
    Key { name: "cwd", field: Field::Cwd, of: PROCESS },
    Key { name: "env", field: Field::Env, of: PROCESS },
    Key { name: "url", field: Field::Url(None), of: REMOTE },
    Key { name: "headers", field: Field::Headers, of: REMOTE },
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "cline",
    program: "Cline",
    syntax: Syntax::Json(&[]),
    files: &["cline_mcp_settings.json"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "transportType", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "transport", field: Field::Object(NESTED), of: Of::All },
        Key { name: "disabled", field: Field::Disabled, of: Of::All },
        Key { name: "timeout", field: Field::Timeout, of: Of::All },
        Key { name: "autoApprove", field: Field::AlwaysAllow, of: Of::All },
        Key { name: "remoteConfigured", field: Field::Own, of: Of::All },
        Key { name: "oauth", field: Field::Own, of: REMOTE },
        Key { name: "oauthClient", field: Field::Object(CLIENT), of: REMOTE },
        Key { name: "metadata", field: Field::Own, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("streamableHttp", Transport::Http)],
    untyped: Untyped::Inferred(Transport::Sse),
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1000, least: 1, most: 3600, outside: Outside::Clamped }),
    // The extension replaces them; the command line does not.
    variables: VariableRule {
        forms: &[Form::Env],
        known: &[],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &["autoApprove", "transportType", "remoteConfigured", "oauthClient"],
};
