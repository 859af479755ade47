//! Visual Studio Code: `.vscode/mcp.json` and the `mcp.json` of a user (read in microsoft/vscode, August 2026).

use super::prelude::*;

const OAUTH: &[Key] = keys! { All "clientId" ClientId, "enterpriseManaged" Own };

/// The keys of how a server is reached, and some more.
macro_rules! connection_and {
    ($($more:tt)*) => {
        keys! {
            All "type" Transport;
            Process "command" Command, "args" Args, "cwd" Cwd, "env" Env, "envFile" EnvFile, "sandbox" Own,
                "sandboxEnabled" Own;
            Remote "url" Url(None), "headers" Headers, "oauth" Object(OAUTH);
            All "dev" Own, "gallery" Own, "version" Own;
            $($more)*
        }
    };
}

const KEYS: &[Key] = connection_and! {
    // As the gallery of older versions wrote it: the connection in an object of its own.
    All "config" Object(connection_and!()), "id" Own;
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "vscode",
    program: "Visual Studio Code",
    syntax: Syntax::Json(&[
        SyntaxExtensionKind::Comment,
        SyntaxExtensionKind::TrailingComma,
        SyntaxExtensionKind::ByteOrderMark,
        SyntaxExtensionKind::Empty,
    ]),
    files: &[
        FileLocation::Project(".vscode/mcp.json"),
        FileLocation::Config("Code/User/mcp.json"),
        FileLocation::Section(".vscode/settings.json"),
        FileLocation::Section("Code/User/settings.json"),
        FileLocation::Section("*.code-workspace"),
        FileLocation::Section(".devcontainer/devcontainer.json"),
        FileLocation::Section(".devcontainer/*/devcontainer.json"),
        FileLocation::Section(".devcontainer.json"),
    ],
    // Of Visual Studio, which has the same format beside its solutions and at home.
    also_reads: &[FileLocation::Project(".mcp.json")],
    sections: &[&["mcp"], &["settings", "mcp"], &["customizations", "vscode", "mcp"]],
    roots: &[&["servers"]],
    root_keys: RootKeys::Known(&["inputs", "sandbox", "gallery", "version"]),
    may_be_empty: true,
    keys: KEYS,
    // Whatever it is called, something with a URL is tried as Streamable HTTP and then as HTTP+SSE.
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    ignores_unknown_transport: true,
    when_type_missing: MissingType::Inferred(Transport::Http),
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
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Empty,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    loose_values: true,
    schemes: &["unix", "pipe"],
    expands_home_in: &[Field::Command, Field::Args, Field::Cwd],
    // `formatSubprocessArguments` in `extHostMcpNode.ts` @0334cc0.
    batch_files: BatchFiles::ByCmd,
    policy: Policy { naming: Naming::Qualified("mcp_{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
