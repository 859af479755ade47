//! LibreChat: the section `mcpServers` of `librechat.yaml` (read in danny-avila/LibreChat).

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "librechat",
    program: "LibreChat",
    syntax: Syntax::Yaml,
    files: &["librechat.yaml", "librechat.yml"],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Section,
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "stderr", field: Field::Own, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "timeout", field: Field::CallTimeout, of: Of::All },
        Key { name: "initTimeout", field: Field::Own, of: Of::All },
        Key { name: "sseReadTimeout", field: Field::Own, of: REMOTE },
        Key { name: "title", field: Field::Own, of: Of::All },
        Key { name: "description", field: Field::Own, of: Of::All },
        Key { name: "startup", field: Field::Own, of: Of::All },
        Key { name: "iconPath", field: Field::Own, of: Of::All },
        Key { name: "chatMenu", field: Field::Own, of: Of::All },
        Key { name: "serverInstructions", field: Field::Own, of: Of::All },
        Key { name: "requiresOAuth", field: Field::Own, of: Of::All },
        Key { name: "oauth", field: Field::Own, of: Of::All },
        Key { name: "oauth_headers", field: Field::Own, of: Of::All },
        Key { name: "apiKey", field: Field::Own, of: Of::All },
        Key { name: "obo", field: Field::Own, of: Of::All },
        Key { name: "customUserVars", field: Field::Own, of: Of::All },
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("streamable-http", Transport::Http),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
        ("websocket", Transport::Ws),
    ],
    untyped: Untyped::Inferred(Transport::Sse),
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Braced],
        known: &[],
        whole: false,
        places: Places::In(&[Field::Env, Field::Url(None), Field::Args, Field::Headers]),
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &["chatMenu", "serverInstructions", "customUserVars", "initTimeout", "endpoints", "mcpSettings"],
};
