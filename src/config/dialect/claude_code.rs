//! Claude Code: `.mcp.json` of a project, and the same section in its own settings (documentation of v2.1.240).

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const OAUTH: &[Key] = &[
    Key { name: "clientId", field: Field::ClientId, of: Of::All },
    Key { name: "callbackPort", field: Field::CallbackPort, of: Of::All },
    Key { name: "authServerMetadataUrl", field: Field::MetadataUrl, of: Of::All },
    Key { name: "scopes", field: Field::Scopes, of: Of::All },
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-code",
    program: "Claude Code",
    syntax: Syntax::Json(&[]),
    files: &[".mcp.json", ".claude.json", "managed-mcp.json"],
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
        Key { name: "headersHelper", field: Field::Own, of: REMOTE },
        Key { name: "oauth", field: Field::Object(OAUTH), of: REMOTE },
        Key { name: "timeout", field: Field::CallTimeout, of: Of::All },
        Key { name: "alwaysLoad", field: Field::Own, of: Of::All },
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
        ("ws", Transport::Ws),
    ],
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1, least: 1000, most: u64::MAX, outside: Outside::Ignored }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Defaulted],
        known: &["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"],
        whole: false,
        places: Places::In(&[Field::Command, Field::Args, Field::Env, Field::Url(None), Field::Headers]),
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &["headersHelper", "alwaysLoad"],
};
