//! GitHub Copilot: `mcp-config.json`, and the portable `.github/mcp.json` (read in microsoft/vscode, 2026).

use super::{Dialect, Empty, Field, Key, Of, Outside, Place, Places, TimeoutRule, Unset, Untyped, VariableRule};
use crate::{
    config::{
        Form,
        policy::{Naming, Patterns, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "copilot",
    program: "GitHub Copilot",
    files: &[Place::Project(".github/mcp.json"), Place::Home(".copilot/mcp-config.json")],
    guest_in: &[Place::Project(".mcp.json")],
    bare: Some("Visual Studio Code reads a `.mcp.json` without `mcpServers`; Copilot CLI needs it"),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("oauthClientId", Field::ClientId, REMOTE),
        Key::new("tools", Field::Include),
        // Threads 172 and 1378 of github/copilot-cli.
        Key::new("timeout", Field::CallTimeout),
    ],
    transports: &[
        ("local", Transport::Stdio),
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
    ],
    untyped: Untyped::Inferred(Transport::Http),
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 180_000,
        least: 0,
        most: u64::MAX,
        whole: true,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Defaulted, Form::Bare],
        places: Places::In(&[Field::Command, Field::Args, Field::Env, Field::Url(None), Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Set,
        ..VariableRule::NONE
    },
    loose_values: true,
    name_characters: Some("-_"),
    policy: Policy { patterns: Patterns::Star, naming: Naming::Qualified("{server}-{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
