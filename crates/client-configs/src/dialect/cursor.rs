//! Cursor: `.cursor/mcp.json` (its documentation of 2026); LM Studio reads the same.

use super::prelude::*;

const AUTH: &[Key] = keys! { All "CLIENT_ID" ClientId, "CLIENT_SECRET" ClientSecret, "scopes" Scopes };

const DOUBTFUL: &[SyntaxExtensionKind] = &[SyntaxExtensionKind::Comment, SyntaxExtensionKind::TrailingComma];

pub(super) static DIALECT: Dialect = Dialect {
    name: "cursor",
    program: "Cursor",
    // Both are undocumented, but common and accepted.
    syntax: Syntax::Json(DOUBTFUL),
    undocumented_syntax: DOUBTFUL,
    files: &[
        FileLocation::Project(".cursor/mcp.json"),
        FileLocation::Home(".cursor/mcp.json"),
        // LM Studio reads what Cursor writes.
        FileLocation::Home(".lmstudio/mcp.json"),
    ],
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env, "envFile" EnvFile;
        Remote "url" Url(None), "headers" Headers, "auth" Object(AUTH);
    },
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamableHttp", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    when_type_missing: MissingType::Inferred(Transport::Http),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &["userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Unknown,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("mcp_{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
