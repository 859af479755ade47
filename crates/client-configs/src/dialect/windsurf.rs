//! Windsurf: `mcp_config.json` (its documentation of 2026).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "windsurf",
    program: "Windsurf",
    files: &[
        FileLocation::Home(".codeium/windsurf/mcp_config.json"),
        FileLocation::Home(".codeium/mcp_config.json"),
        FileLocation::Named("mcp_config.json"),
    ],
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "serverUrl" Url(None), "url" Url(None), "headers" Headers;
        All "disabled" Disabled, "disabledTools" Exclude, "alwaysAllow" AlwaysAllow;
    },
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    when_type_missing: MissingType::Inferred(Transport::Http),
    variables: VariableRule {
        forms: &[Form::Env],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Empty,
        empty: EmptyVariable::Nothing,
        template: Some(Template { open: "${file:", close: "}", prefix: "" }),
        ..VariableRule::NONE
    },
    // It counts the servers in place of naming them: mcp0_, mcp1_.
    policy: Policy { naming: Naming::Qualified("mcp0_{tool}"), duplicates: Duplicates::Qualified, ..Policy::USUAL },
    ..Dialect::PLAIN
};
