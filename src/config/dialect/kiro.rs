//! Kiro, the successor of Amazon Q Developer CLI: `.kiro/settings/mcp.json` (its documentation).

use super::{
    Dialect, Empty, Field, Key, Of, Outside, Place, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped, VariableRule,
};
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
    syntax: Syntax::Json(&[LibertyKind::Comment]),
    files: &[
        Place::Project(".kiro/settings/mcp.json"),
        Place::Home(".kiro/settings/mcp.json"),
        Place::Section(".kiro/agents/*.json"),
    ],
    root_keys: RootKeys::Known(ROOT),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("oauthScopes", Field::Scopes, REMOTE),
        Key::of("oauth", Field::Own, REMOTE),
        Key::new("timeout", Field::Timeout),
        Key::new("disabled", Field::Disabled),
        Key::new("autoApprove", Field::AlwaysAllow),
        Key::new("disabledTools", Field::Exclude),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    elsewhere_word: Some("registry"),
    untyped: Untyped::Inferred(Transport::Http),
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 120_000,
        least: 0,
        most: u64::MAX,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Env],
        places: Places::In(&[Field::Env, Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("{server}___{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
