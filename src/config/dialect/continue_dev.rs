//! Continue: the list `mcpServers` of its `config.yaml` (read in continuedev/continue, June 2026).

use super::{
    Both, Collection, Dialect, Field, Key, Of, Outside, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped,
    VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };
const REQUEST: &[Key] = &[
    Key { name: "headers", field: Field::Headers, of: Of::All },
    Key { name: "timeout", field: Field::Own, of: Of::All },
    Key { name: "verifySsl", field: Field::Own, of: Of::All },
    Key { name: "caBundlePath", field: Field::Own, of: Of::All },
    Key { name: "proxy", field: Field::Own, of: Of::All },
    Key { name: "extraBodyProperties", field: Field::Own, of: Of::All },
    Key { name: "noProxy", field: Field::Own, of: Of::All },
    Key { name: "clientCertificate", field: Field::Own, of: Of::All },
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "continue",
    program: "Continue",
    syntax: Syntax::Yaml,
    files: &[".continue/config.yaml", ".continue/config.yml"],
    roots: &[&["mcpServers"]],
    collection: Collection::List { elsewhere: "uses" },
    root_keys: RootKeys::Section,
    defaults: None,
    keys: &[
        Key { name: "name", field: Field::Name, of: Of::All },
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "apiKey", field: Field::Own, of: REMOTE },
        Key { name: "requestOptions", field: Field::Object(REQUEST), of: REMOTE },
        Key { name: "connectionTimeout", field: Field::Timeout, of: Of::All },
        Key { name: "serverName", field: Field::Own, of: Of::All },
        Key { name: "faviconUrl", field: Field::Own, of: Of::All },
        Key { name: "sourceFile", field: Field::Own, of: Of::All },
        Key { name: "sourceSlug", field: Field::Own, of: Of::All },
    ],
    transports: &[("stdio", Transport::Stdio), ("streamable-http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1, least: 1, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Secret],
        known: &[],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Kept,
    },
    loose_values: false,
    name_characters: None,
    marks: &[],
};
