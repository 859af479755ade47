//! Visual Studio Code: `.vscode/mcp.json` and the `mcp.json` of a user (read in microsoft/vscode, August 2026).

use super::{Both, Collection, Dialect, Field, Key, Of, Place, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{
    config::{
        Form,
        json::LibertyKind,
        policy::{Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const OAUTH: &[Key] = &[Key::new("clientId", Field::ClientId), Key::new("enterpriseManaged", Field::Own)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "vscode",
    program: "Visual Studio Code",
    syntax: Syntax::Json(&[
        LibertyKind::Comment,
        LibertyKind::TrailingComma,
        LibertyKind::ByteOrderMark,
        LibertyKind::Nothing,
    ]),
    files: &[Place::Project(".vscode/mcp.json"), Place::Config("Code/User/mcp.json")],
    roots: &[&["servers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Known(&["inputs", "sandbox", "gallery", "version"]),
    defaults: None,
    switch: None,
    projects: None,
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("envFile", Field::EnvFile, PROCESS),
        Key::of("sandboxEnabled", Field::Own, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("oauth", Field::Object(OAUTH), REMOTE),
        Key::new("dev", Field::Own),
        Key::new("gallery", Field::Own),
        Key::new("version", Field::Own),
    ],
    // Whatever it is called, something with a URL is tried as Streamable HTTP and then as HTTP+SSE.
    required: &[],
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
            "config",
            "command",
            "extensionInstallFolder",
        ],
        whole: false,
        places: Places::Everywhere,
        unset: Unset::Empty,
    },
    loose_values: true,
    name_characters: None,
    reserved_names: &[],
    schemes: &["unix", "pipe"],
    expands_home: true,
    agent: false,
    policy: Policy { naming: Naming::Qualified("mcp_{server}_{tool}"), ..Policy::USUAL },
};
