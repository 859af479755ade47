//! Amazon Q Developer CLI: `mcp.json` (read in aws/amazon-q-developer-cli 1.19.7, April 2026).

use super::prelude::*;

/// What an agent has beside its servers (`docs/agent-format.md` of the program).
const AGENT: &[&str] = &[
    "prompt",
    "tools",
    "toolAliases",
    "allowedTools",
    "toolsSettings",
    "resources",
    "hooks",
    "useLegacyMcpJson",
    "model",
];

const AGENTS: &[FileLocation] =
    &[FileLocation::Section(".amazonq/cli-agents/*.json"), FileLocation::Section(".aws/amazonq/cli-agents/*.json")];

pub(super) static DIALECT: Dialect = Dialect {
    name: "amazon-q",
    program: "Amazon Q",
    files: &[
        FileLocation::Project(".amazonq/mcp.json"),
        FileLocation::Home(".aws/amazonq/mcp.json"),
        AGENTS[0],
        AGENTS[1],
    ],
    root_keys: RootKeys::Known(AGENT),
    strict_files: Files::These(AGENTS),
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers;
        All "oauthScopes" Scopes;
        Remote "oauth" Own;
        All "timeout" Timeout, "disabled" Disabled;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    elsewhere_word: Some("registry"),
    when_type_missing: MissingType::Process,
    timeout: Some(TimeoutRule { default: 120_000, whole: true, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Env],
        scope: VariableScope::Fields(&[Field::Env, Field::Headers]),
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    // The crate shellexpand does it: what is not set stays as it is written.
    command_variables: Some(VariableRule {
        forms: &[Form::Bare, Form::Braced, Form::Defaulted],
        scope: VariableScope::Fields(&[Field::Command]),
        ..VariableRule::NONE
    }),
    empty_is_absent: true,
    null_env: true,
    expands_home_in: &[Field::Command],
    // `Command::new` of Rust finds `.exe` alone (`mcp_client/client.rs` @08497cf).
    batch_files: BatchFiles::Unreliable,
    policy: Policy { naming: Naming::Qualified("{server}___{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
