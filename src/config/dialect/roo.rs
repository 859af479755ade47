//! Roo Code: `mcp_settings.json` and `.roo/mcp.json` (read in RooCodeInc/Roo-Code 3.52.1, April 2026); the older Kilo Code
//! has the same under `.kilocode`.

use super::{Both, Dialect, Empty, Field, Key, Of, Outside, Place, Places, TimeoutRule, Unset, Untyped, VariableRule};
use crate::{
    config::{
        Form,
        policy::{Environment, Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

pub(super) static DIALECT: Dialect = Dialect {
    name: "roo",
    program: "Roo Code",
    files: &[
        Place::Project(".roo/mcp.json"),
        Place::Project(".kilocode/mcp.json"),
        Place::Config("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        Place::Config("Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json"),
        Place::Named("mcp_settings.json"),
    ],
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("disabled", Field::Disabled),
        Key::new("timeout", Field::CallTimeout),
        Key::new("alwaysAllow", Field::AlwaysAllow),
        Key::new("disabledTools", Field::Exclude),
        Key::new("watchPaths", Field::Own),
    ],
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("streamable-http", Transport::Http)],
    untyped: Untyped::Inferred(Transport::Sse),
    both: Both::Rejected,
    timeout: Some(TimeoutRule {
        unit: 1000,
        default: 60,
        least: 1,
        most: 3600,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &["workspaceFolder"],
        places: Places::Everywhere,
        unset: Unset::Kept,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy {
        naming: Naming::Qualified("mcp--{server}--{tool}"),
        environment: Environment::SDK,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
