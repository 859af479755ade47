//! Gemini CLI: the section `mcpServers` of its `settings.json` (read in google-gemini/gemini-cli, August 2026).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "gemini",
    program: "Gemini CLI",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment]),
    files: &[
        FileLocation::Project(".gemini/settings.json"),
        FileLocation::Home(".gemini/settings.json"),
        FileLocation::Named("gemini-extension.json"),
    ],
    root_keys: RootKeys::Section(&["selectedAuthType", "contextFileName", "security", "general", "ui", "hooks", "mcp"]),
    name_lists: Some(NameLists { allowed: &["mcp", "allowed"], excluded: &["mcp", "excluded"] }),
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
        Remote "httpUrl" Url(Some(Transport::Http)), "url" Url(None), "headers" Headers;
        All "tcp" Own, "timeout" Timeout, "trust" Trust, "description" Own, "includeTools" Include,
            "excludeTools" Exclude, "extension" Own;
        Remote "oauth" Own, "authProviderType" Own, "targetAudience" Own, "targetServiceAccount" Own;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    // The settings are used as they are written, even if their validation fails.
    ignores_unknown_transport: true,
    coerces_scalars: true,
    // Rules for tools take what is before the first one for the name.
    name_discouraged: Some('_'),
    when_type_missing: MissingType::Inferred(Transport::Http),
    when_both_given: CommandAndUrl::Remote,
    timeout: Some(TimeoutRule { default: 600_000, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced, Form::Defaulted],
        known: &["extensionPath", "workspacePath", "pathSeparator", "/"],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Set,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("mcp_{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
