//! Amazon Q Developer CLI: `mcp.json` (read in aws/amazon-q-developer-cli 1.19.7, April 2026).

use super::{
    Dialect, Empty, Field, Files, Key, Of, Outside, Place, Places, RootKeys, TimeoutRule, Unset, Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        policy::{Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

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

const AGENTS: &[Place] =
    &[Place::Section(".amazonq/cli-agents/*.json"), Place::Section(".aws/amazonq/cli-agents/*.json")];

pub(super) static DIALECT: Dialect = Dialect {
    name: "amazon-q",
    program: "Amazon Q",
    files: &[Place::Project(".amazonq/mcp.json"), Place::Home(".aws/amazonq/mcp.json"), AGENTS[0], AGENTS[1]],
    root_keys: RootKeys::Known(AGENT),
    strict_files: Files::Of(AGENTS),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("oauthScopes", Field::Scopes),
        Key::of("oauth", Field::Own, REMOTE),
        Key::new("timeout", Field::Timeout),
        Key::new("disabled", Field::Disabled),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    elsewhere_word: Some("registry"),
    untyped: Untyped::Process,
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 120_000,
        least: 0,
        most: u64::MAX,
        whole: true,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Env],
        places: Places::In(&[Field::Env, Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    // The crate shellexpand does it: what is not set stays as it is written.
    command_variables: Some(VariableRule {
        forms: &[Form::Bare, Form::Braced, Form::Defaulted],
        places: Places::In(&[Field::Command]),
        ..VariableRule::NONE
    }),
    writes_all: true,
    null_env: true,
    home: &[Field::Command],
    policy: Policy { naming: Naming::Qualified("{server}___{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
