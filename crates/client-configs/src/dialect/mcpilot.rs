//! MCPilot: a settings file as Cline had it, which nothing in it reads, and the section `mcp.servers` of its own config.

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "mcpilot",
    program: "MCPilot",
    files: &[
        FileLocation::Project(".mcpilot/.mcpilot.config.json"),
        FileLocation::Home(".mcpilot/.mcpilot.config.json"),
        FileLocation::Named(".mcpilot.config.json"),
        FileLocation::Named("mcpilot.config.json"),
    ],
    roots: &[&["mcpServers"], &["mcp", "servers"]],
    root_keys: RootKeys::Known(&["providers", "session", "logging"]),
    keys: keys! {
        All "type" Transport, "command" Command, "args" Args, "env" Env, "disabled" Disabled, "timeout" Timeout,
            "alwaysAllow" AlwaysAllow;
    },
    transports: &[("stdio", Transport::Stdio)],
    when_type_missing: MissingType::Process,
    timeout: Some(TimeoutRule { default: 60, least: 1, most: 3600, ..TimeoutRule::SECONDS }),
    variables: VariableRule {
        forms: &[Form::Braced],
        whole: true,
        scope: VariableScope::Fields(&[Field::Env]),
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Unset,
        ..VariableRule::NONE
    },
    policy: Policy {
        naming: Naming::Bare,
        environment: Environment::Only { unix: &["PATH"], windows: &["PATH"] },
        concurrency: NonZeroUsize::MIN,
        client_info: ClientInfo::Named { name: "MCPilot", title: None, version: Some("1.0.0") },
        projection: Projection::Mcpilot,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
