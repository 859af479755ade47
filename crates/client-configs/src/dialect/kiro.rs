//! Kiro, the successor of Amazon Q Developer CLI: `.kiro/settings/mcp.json` (its documentation).

use super::prelude::*;

/// What an agent has beside its servers, and where the powers are that bring servers of their own.
const ROOT: &[&str] = &[
    "prompt",
    "tools",
    "toolAliases",
    "allowedTools",
    "toolsSettings",
    "resources",
    "hooks",
    "useLegacyMcpJson",
    "model",
    "includeMcpJson",
    "keyboardShortcut",
    "welcomeMessage",
    "powers",
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "kiro",
    program: "Kiro",
    // The editor takes comments, the command line does not.
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment]),
    files: &[
        FileLocation::Project(".kiro/settings/mcp.json"),
        FileLocation::Home(".kiro/settings/mcp.json"),
        FileLocation::Section(".kiro/agents/*.json"),
    ],
    root_keys: RootKeys::Known(ROOT),
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers, "oauthScopes" Scopes, "oauth" Own;
        All "timeout" Timeout, "disabled" Disabled, "autoApprove" AlwaysAllow, "disabledTools" Exclude;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    elsewhere_word: Some("registry"),
    when_type_missing: MissingType::Inferred(Transport::Http),
    timeout: Some(TimeoutRule { default: 120_000, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Env],
        scope: VariableScope::Fields(&[Field::Env, Field::Headers]),
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("{server}___{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
