//! Cline: `cline_mcp_settings.json` (read in cline/cline 4.1.13, August 2026).

use super::prelude::*;

const CLIENT: &[Key] = keys! { All "clientId" ClientId, "clientSecret" ClientSecret };

/// What `cline mcp add` writes: the connection in an object of its own.
const NESTED: &[Key] = keys! {
    All "type" Transport;
    Process "command" Command, "args" Args, "cwd" Cwd, "env" Env;
    Remote "url" Url(None), "headers" Headers;
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "cline",
    program: "Cline",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Empty]),
    files: &[
        FileLocation::Home(".cline/data/settings/cline_mcp_settings.json"),
        FileLocation::Config("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        FileLocation::Named("cline_mcp_settings.json"),
    ],
    may_be_empty: true,
    keys: keys! {
        All "type" Transport, "transportType" Transport;
        Process "command" Command, "args" Args, "cwd" Cwd, "env" Env;
        Remote "url" Url(None), "headers" Headers;
        All "transport" Object(NESTED), "disabled" Disabled, "timeout" Timeout, "autoApprove" AlwaysAllow;
        // Its former name, which MCPilot still uses.
        All "alwaysAllow" AlwaysAllow, "remoteConfigured" Own;
        Remote "oauth" Own, "oauthClient" Object(CLIENT);
        All "metadata" Own;
    },
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("streamableHttp", Transport::Http)],
    typed_objects: true,
    when_type_missing: MissingType::Inferred(Transport::Sse),
    timeout: Some(TimeoutRule {
        default: 60,
        least: 1,
        most: 3600,
        outside: OutOfRange::Clamped,
        ..TimeoutRule::SECONDS
    }),
    // The extension replaces them; the command line does not.
    variables: VariableRule {
        forms: &[Form::Env],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Set,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("{server}__{tool}"), environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
