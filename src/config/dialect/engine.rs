//! The engine of aidk: servers as Cursor writes them, or in full with `transport`, `connection` and `auth`.

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{config::json::LibertyKind, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };
const CONNECTION: &[Key] = &[
    Key { name: "command", field: Field::Command, of: PROCESS },
    Key { name: "args", field: Field::Args, of: PROCESS },
    Key { name: "env", field: Field::Env, of: PROCESS },
    Key { name: "cwd", field: Field::Cwd, of: PROCESS },
    Key { name: "url", field: Field::Url(None), of: REMOTE },
    Key { name: "headers", field: Field::Headers, of: REMOTE },
];

const AUTH: &[Key] =
    &[Key { name: "type", field: Field::Own, of: Of::All }, Key { name: "token", field: Field::Bearer, of: Of::All }];

pub(super) static DIALECT: Dialect = Dialect {
    name: "engine",
    program: "aidk engine",
    syntax: Syntax::Json(&[
        LibertyKind::Comment,
        LibertyKind::TrailingComma,
        LibertyKind::SingleQuotes,
        LibertyKind::BareKey,
    ]),
    files: &[],
    roots: &[&["mcpServers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    keys: &[
        Key { name: "serverName", field: Field::Own, of: Of::All },
        Key { name: "transport", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "connection", field: Field::Object(CONNECTION), of: Of::All },
        Key { name: "auth", field: Field::Object(AUTH), of: REMOTE },
    ],
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("websocket", Transport::Ws)],
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: None,
    variables: VariableRule { forms: &[], known: &[], whole: false, places: Places::Nowhere, unset: Unset::Kept },
    loose_values: false,
    name_characters: None,
    marks: &["connection", "serverName"],
};
