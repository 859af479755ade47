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
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
        Remote "url" Url(Some(Transport::Sse)), "httpUrl" Url(Some(Transport::Http)), "headers" Headers;
        All "timeout" Timeout, "toolTimeouts" ToolTimeouts, "trust" Trust, "includeTools" Include,
            "excludeTools" Exclude, "debug" Debug;
    },
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
