//! Cline: `cline_mcp_settings.json` (read in cline/cline 4.1.13, August 2026).

use super::prelude::*;

const CLIENT: &[Key] = &[Key::new("clientId", Field::ClientId), Key::new("clientSecret", Field::ClientSecret)];

/// What `cline mcp add` writes: the connection in an object of its own.
const NESTED: &[Key] = &[
    Key::new("type", Field::Transport),
    Key::process("command", Field::Command),
    Key::process("args", Field::Args),
    Key::process("cwd", Field::Cwd),
    Key::process("env", Field::Env),
    Key::remote("url", Field::Url(None)),
    Key::remote("headers", Field::Headers),
];

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
    keys: &[
        Key::new("type", Field::Transport),
        Key::new("transportType", Field::Transport),
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("cwd", Field::Cwd),
        Key::process("env", Field::Env),
        Key::remote("url", Field::Url(None)),
        Key::remote("headers", Field::Headers),
        Key::new("transport", Field::Object(NESTED)),
        Key::new("disabled", Field::Disabled),
        Key::new("timeout", Field::Timeout),
        Key::new("autoApprove", Field::AlwaysAllow),
        // Its former name, which MCPilot still uses.
        Key::new("alwaysAllow", Field::AlwaysAllow),
        Key::new("remoteConfigured", Field::Own),
        Key::remote("oauth", Field::Own),
        Key::remote("oauthClient", Field::Object(CLIENT)),
        Key::new("metadata", Field::Own),
    ],
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
