//! code_agent: JSON with the servers under `mcp.servers`, and what holds for all of them under `mcp.globalSettings`.

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "code_agent",
    program: "code_agent",
    syntax: Syntax::JsonOrYaml,
    files: &[
        FileLocation::Home(".code_agent/config.json"),
        FileLocation::Named(".code_agent/*.json"),
        FileLocation::Named(".code_agent/*.yaml"),
    ],
    // The last form is what the program reads in fact, the first is what it documents; it takes Claude's before its own.
    roots: &[&["mcp", "servers"], &["mcpServers"], &["servers"]],
    root_keys: RootKeys::Section(&["enabled"]),
    defaults: Some(&["mcp", "globalSettings"]),
    global_enable_key: Some("enabled"),
    rejects_misplaced_keys: true,
    keys: &[
        Key::new("type", Field::Transport),
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::process("cwd", Field::Cwd),
        Key::remote("url", Field::Url(Some(Transport::Sse))),
        Key::remote("httpUrl", Field::Url(Some(Transport::Http))),
        Key::remote("headers", Field::Headers),
        Key::new("timeout", Field::Timeout),
        Key::new("toolTimeouts", Field::ToolTimeouts),
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
    when_type_missing: MissingType::Inferred(Transport::Sse),
    // The program wants it in its own form, and distinguishes it only by the keys of Claude's.
    is_explicit: true,
    timeout: Some(TimeoutRule { default: 30_000, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Braced],
        scope: VariableScope::Fields(&[Field::Headers, Field::Args, Field::Env]),
        unset: UnsetVariable::Rejected,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy {
        both_filters: BothFilters::IncludeWins,
        patterns: Patterns::Globs,
        naming: Naming::Literal("{tool}@{server}"),
        describes_server: true,
        token_folder: Some(".code_agent/mcp-tokens"),
        projection: Projection::CodeAgent,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
