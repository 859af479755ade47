//! GitHub Copilot: `mcp-config.json`, and the portable `.github/mcp.json` (read in microsoft/vscode, 2026).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "copilot",
    program: "GitHub Copilot",
    files: &[FileLocation::Project(".github/mcp.json"), FileLocation::Home(".copilot/mcp-config.json")],
    also_reads: &[FileLocation::Project(".mcp.json")],
    bare_map_note: Some("Visual Studio Code reads a `.mcp.json` without `mcpServers`; Copilot CLI needs it"),
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
        Remote "url" Url(None), "headers" Headers, "oauthClientId" ClientId;
        All "tools" Include;
        // Threads 172 and 1378 of github/copilot-cli.
        All "timeout" CallTimeout;
    },
    transports: &[
        ("local", Transport::Stdio),
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    when_type_missing: MissingType::Inferred(Transport::Http),
    timeout: Some(TimeoutRule { default: 180_000, whole: true, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Defaulted, Form::Bare],
        scope: VariableScope::Fields(&[Field::Command, Field::Args, Field::Env, Field::Url(None), Field::Headers]),
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Set,
        ..VariableRule::NONE
    },
    loose_values: true,
    name_characters: Some("-_"),
    policy: Policy { patterns: Patterns::Star, naming: Naming::Qualified("{server}-{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
