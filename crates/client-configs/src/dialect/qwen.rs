//! Qwen Code: the section `mcpServers` of its `settings.json` (read in QwenLM/qwen-code `mcp-server-config.ts` @67f799c,
//! `envVarResolver.ts` @38754ef and its documentation @023f40b, 2026-11-23).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "qwen",
    program: "Qwen Code",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment]),
    files: &[
        FileLocation::Project(".qwen/settings.json"),
        FileLocation::Home(".qwen/settings.json"),
        FileLocation::Named("qwen-extension.json"),
    ],
    root_keys: RootKeys::Section(&["security", "general", "ui", "hooks", "mcp"]),
    name_lists: Some(NameLists { allowed: &["mcp", "allowed"], excluded: &["mcp", "excluded"] }),
    keys: keys! {
        Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
        Remote "httpUrl" Url(Some(Transport::Http)), "url" Url(Some(Transport::Sse)), "headers" Headers;
        All "tcp" Own, "type" Own, "timeout" CallTimeout, "discoveryTimeoutMs" StartTimeout, "trust" Trust,
            "description" Own, "includeTools" Include, "excludeTools" Exclude, "alwaysLoadTools" Own;
        Process "versionNegotiation" Own;
        All "extensionName" Own;
        Remote "oauth" Own, "authProviderType" Own, "targetAudience" Own, "targetServiceAccount" Own;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    when_type_missing: MissingType::Inferred(Transport::Sse),
    when_both_given: CommandAndUrl::Remote,
    timeout: Some(TimeoutRule { default: 600_000, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    ..Dialect::PLAIN
};
