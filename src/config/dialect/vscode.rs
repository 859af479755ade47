//! Visual Studio Code: `.vscode/mcp.json` and the `mcp.json` of a user (read in microsoft/vscode, August 2026).

use super::{Dialect, Empty, Field, Key, Of, Place, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
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

/// The keys of how a server is reached, and some more.
macro_rules! connection_and {
    ($($more:expr),* $(,)?) => {
        &[
            Key::new("type", Field::Transport),
            Key::of("command", Field::Command, PROCESS),
            Key::of("args", Field::Args, PROCESS),
            Key::of("cwd", Field::Cwd, PROCESS),
            Key::of("env", Field::Env, PROCESS),
            Key::of("envFile", Field::EnvFile, PROCESS),
            Key::of("sandbox", Field::Own, PROCESS),
            Key::of("sandboxEnabled", Field::Own, PROCESS),
            Key::of("url", Field::Url(None), REMOTE),
            Key::of("headers", Field::Headers, REMOTE),
            Key::of("oauth", Field::Object(OAUTH), REMOTE),
            Key::new("dev", Field::Own),
            Key::new("gallery", Field::Own),
            Key::new("version", Field::Own),
            $($more),*
        ]
    };
}

const KEYS: &[Key] = connection_and![
    // As the gallery of older versions wrote it: the connection in an object of its own.
    Key::new("config", Field::Object(connection_and![])),
    Key::new("id", Field::Own),
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "vscode",
    program: "Visual Studio Code",
    syntax: Syntax::Json(&[
        LibertyKind::Comment,
        LibertyKind::TrailingComma,
        LibertyKind::ByteOrderMark,
        LibertyKind::Nothing,
    ]),
    files: &[
        Place::Project(".vscode/mcp.json"),
        Place::Config("Code/User/mcp.json"),
        Place::Section(".vscode/settings.json"),
        Place::Section("Code/User/settings.json"),
        Place::Section("*.code-workspace"),
        Place::Section(".devcontainer/devcontainer.json"),
        Place::Section(".devcontainer/*/devcontainer.json"),
        Place::Section(".devcontainer.json"),
    ],
    // Of Visual Studio, which has the same format beside its solutions and at home.
    guest_in: &[Place::Project(".mcp.json")],
    sections: &[&["mcp"], &["settings", "mcp"], &["customizations", "vscode", "mcp"]],
    roots: &[&["servers"]],
    root_keys: RootKeys::Known(&["inputs", "sandbox", "gallery", "version"]),
    may_be_empty: true,
    keys: KEYS,
    // Whatever it is called, something with a URL is tried as Streamable HTTP and then as HTTP+SSE.
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    guesses: true,
    untyped: Untyped::Inferred(Transport::Http),
    variables: VariableRule {
        forms: &[Form::Env, Form::Input],
        known: &[
            "workspaceFolder",
            "workspaceFolderBasename",
            // What they were called before there could be several.
            "workspaceRoot",
            "workspaceRootFolderName",
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
            "fileExtname",
            "fileBasenameNoExtension",
            "fileDirnameBasename",
            "fileWorkspaceFolder",
            "fileWorkspaceFolderBasename",
            "relativeFileDirname",
            "columnNumber",
            "defaultBuildTask",
        ],
        places: Places::Everywhere,
        unset: Unset::Empty,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    loose_values: true,
    schemes: &["unix", "pipe"],
    home: &[Field::Command, Field::Args, Field::Cwd],
    policy: Policy { naming: Naming::Qualified("mcp_{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
