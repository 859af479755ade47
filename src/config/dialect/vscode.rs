//! Visual Studio Code: `.vscode/mcp.json` and the `mcp.json` of a user (read in microsoft/vscode, August 2026).

use super::{Both, Collection, Dialect, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{
    config::{Form, json::LibertyKind},
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const OAUTH: &[Key] = &[
    Key { name: "clientId", field: Field::ClientId, of: Of::All },
    Key { name: "enterpriseManaged", field: Field::Own, of: Of::All },
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "vscode",
    program: "Visual Studio Code",
    syntax: Syntax::Json(&[LibertyKind::Comment, LibertyKind::TrailingComma, LibertyKind::ByteOrderMark]),
    files: &[".vscode/mcp.json", "Code/User/mcp.json"],
    roots: &[&["servers"]],
    collection: Collection::Map,
    root_keys: RootKeys::Known(&["inputs", "sandbox", "gallery", "version"]),
    defaults: None,
    keys: &[
        Key { name: "type", field: Field::Transport, of: Of::All },
        Key { name: "command", field: Field::Command, of: PROCESS },
        Key { name: "args", field: Field::Args, of: PROCESS },
        Key { name: "cwd", field: Field::Cwd, of: PROCESS },
        Key { name: "env", field: Field::Env, of: PROCESS },
        Key { name: "envFile", field: Field::EnvFile, of: PROCESS },
        Key { name: "sandboxEnabled", field: Field::Own, of: PROCESS },
        Key { name: "url", field: Field::Url(None), of: REMOTE },
        Key { name: "headers", field: Field::Headers, of: REMOTE },
        Key { name: "oauth", field: Field::Object(OAUTH), of: REMOTE },
        Key { name: "dev", field: Field::Own, of: Of::All },
        Key { name: "gallery", field: Field::Own, of: Of::All },
        Key { name: "version", field: Field::Own, of: Of::All },
    ],
    // Whatever it is called, something with a URL is tried as Streamable HTTP and then as HTTP+SSE.
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Started,
    timeout: None,
    variables: VariableRule {
        forms: &[Form::Env, Form::Input],
        known: &[
            "workspaceFolder",
            "workspaceFolderBasename",
            "userHome",
            "cwd",
            "pathSeparator",
            "/",
            "execPath",
            "file",
            "fileBasename",
            "fileDirname",
            "relativeFile",
            "lineNumber",
            "selectedText",
        ],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Empty,
    },
    loose_values: true,
    name_characters: None,
    marks: &["inputs", "sandboxEnabled", "dev"],
};
