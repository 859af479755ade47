//! Roo Code: `mcp_settings.json` and `.roo/mcp.json` (read in RooCodeInc/Roo-Code 3.52.1, April 2026); the older Kilo Code
//! has the same under `.kilocode`.

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "roo",
    program: "Roo Code",
    files: &[
        FileLocation::Project(".roo/mcp.json"),
        FileLocation::Project(".kilocode/mcp.json"),
        FileLocation::Config("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        FileLocation::Config("Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json"),
        FileLocation::Named("mcp_settings.json"),
    ],
    rejects_misplaced_keys: true,
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "cwd" Cwd, "env" Env;
        Remote "url" Url(None), "headers" Headers;
        All "disabled" Disabled, "timeout" CallTimeout, "alwaysAllow" AlwaysAllow, "disabledTools" Exclude,
            "watchPaths" Own;
    },
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("streamable-http", Transport::Http)],
    when_type_missing: MissingType::Inferred(Transport::Sse),
    when_both_given: CommandAndUrl::Rejected,
    // It starts every command so (`McpHub.ts` @022b3b0).
    batch_files: BatchFiles::ByCmd,
    timeout: Some(TimeoutRule { default: 60, least: 1, most: 3600, ..TimeoutRule::SECONDS }),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &["workspaceFolder"],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    policy: Policy {
        naming: Naming::Qualified("mcp--{server}--{tool}"),
        environment: Environment::SDK,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
