//! code_agent: JSON with the servers under `mcp.servers`, and what holds for all of them under `mcp.globalSettings`.

use super::{
    Dialect, Empty, Field, Key, Of, Outside, Place, Places, RootKeys, Syntax, TimeoutRule, Unset, Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        policy::{BothFilters, Naming, Patterns, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

pub(super) static DIALECT: Dialect = Dialect {
    name: "code_agent",
    program: "code_agent",
    syntax: Syntax::Either(&[]),
    files: &[Place::Home(".code_agent/config.json")],
    // The last form is what the program reads in fact, the first is what it documents; it takes Claude's before its own.
    roots: &[&["mcp", "servers"], &["mcpServers"], &["servers"]],
    root_keys: RootKeys::Section(&["enabled"]),
    defaults: Some(&["mcp", "globalSettings"]),
    switch: Some("enabled"),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("url", Field::Url(Some(Transport::Sse)), REMOTE),
        Key::of("httpUrl", Field::Url(Some(Transport::Http)), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("timeout", Field::Timeout),
        Key::new("trust", Field::Trust),
        Key::new("includeTools", Field::Include),
        Key::new("excludeTools", Field::Exclude),
        Key::new("debug", Field::Debug),
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
        ("streamable", Transport::Http),
    ],
    // The first two as it documents them, the last as it reads them in fact.
    url_keys: &[("sse", "url"), ("http", "httpUrl"), ("streamable", "url")],
    untyped: Untyped::Inferred(Transport::Sse),
    // The program wants it in its own form, and tells it only from the keys of Claude's.
    is_explicit: true,
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 30_000,
        least: 0,
        most: u64::MAX,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Braced],
        places: Places::In(&[Field::Headers, Field::Args, Field::Env]),
        unset: Unset::Rejected,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy {
        both_filters: BothFilters::IncludeWins,
        patterns: Patterns::Globs,
        naming: Naming::Qualified("mcp_{server}_{tool}"),
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
