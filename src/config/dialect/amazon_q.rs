//! Amazon Q Developer CLI: `mcp.json` (read in aws/amazon-q-developer-cli 1.19.7, April 2026).

use super::{Dialect, Empty, Field, Key, Of, Outside, Place, Places, TimeoutRule, Unset, Untyped, VariableRule};
use crate::{
    config::{
        Form,
        policy::{Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "amazon-q",
    program: "Amazon Q",
    files: &[Place::Project(".amazonq/mcp.json"), Place::Home(".aws/amazonq/mcp.json")],
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
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    untyped: Untyped::Process,
    timeout: Some(TimeoutRule { unit: 1, default: 120_000, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &[],
        whole: false,
        places: Places::In(&[Field::Env, Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Nothing,
    },
    policy: Policy { naming: Naming::Qualified("{server}___{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
