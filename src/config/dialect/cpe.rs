//! CPE: YAML (or JSON) with models, defaults, and the servers under `mcpServers`.

use super::{
    Beside, Dialect, Empty, Field, Key, Of, Outside, Place, Places, Profiles, RootKeys, Syntax, TimeoutRule, Unset,
    Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        policy::{ApprovalRule, BothFilters, EmptyFilter, Naming, Policy, Unreachable},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

pub(super) static DIALECT: Dialect = Dialect {
    name: "cpe",
    program: "CPE",
    syntax: Syntax::Either(&[]),
    files: &[
        Place::Project("cpe.yaml"),
        Place::Project("cpe.yml"),
        Place::Config("cpe/cpe.yaml"),
        Place::Config("cpe/cpe.yml"),
    ],
    root_keys: RootKeys::Section(&["models", "subagent", "defaults"]),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("timeout", Field::Timeout),
        Key::new("enabledTools", Field::Include),
        Key::new("disabledTools", Field::Exclude),
    ],
    beside: &[Beside { key: "version", value: "1.0", required: false }],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    // Of its own tools, in some of its versions.
    elsewhere_word: Some("builtin"),
    untyped: Untyped::Rejected,
    timeout: Some(TimeoutRule {
        unit: 1000,
        default: 60,
        least: 0,
        most: u64::MAX,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced],
        by_go: true,
        in_text: true,
        places: Places::Everywhere,
        unset: Unset::Empty,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    profiles: Some(Profiles { key: "models", servers: "mcpServers", untyped: Untyped::Process, strict: true }),
    agent: true,
    policy: Policy {
        both_filters: BothFilters::Rejected,
        empty_filter: EmptyFilter::Rejected,
        naming: Naming::Bare,
        unreachable: Unreachable::Fatal,
        approval: ApprovalRule::Never,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
