//! Qwen Code: the section `mcpServers` of its `settings.json` (read in QwenLM/qwen-code `mcp-server-config.ts` @67f799c,
//! `envVarResolver.ts` @38754ef and its documentation @023f40b, 2026-11-23).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "qwen",
    program: "Qwen Code",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment]),
    files: &[
        FileLocation::Project(".qwen/settings.json"),
        FileLocation::Home(".qwen/settings.json"),
        FileLocation::Named("qwen-extension.json"),
    ],
    root_keys: RootKeys::Section(&["security", "general", "ui", "hooks", "mcp"]),
    name_lists: Some(NameLists { allowed: &["mcp", "allowed"], excluded: &["mcp", "excluded"] }),
    keys: &[
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::process("cwd", Field::Cwd),
        Key::remote("httpUrl", Field::Url(Some(Transport::Http))),
        Key::remote("url", Field::Url(Some(Transport::Sse))),
        Key::remote("headers", Field::Headers),
        Key::new("tcp", Field::Own),
        Key::new("type", Field::Own),
        Key::new("timeout", Field::CallTimeout),
        Key::new("discoveryTimeoutMs", Field::StartTimeout),
        Key::new("trust", Field::Trust),
        Key::new("description", Field::Own),
        Key::new("includeTools", Field::Include),
        Key::new("excludeTools", Field::Exclude),
        Key::new("alwaysLoadTools", Field::Own),
        Key::process("versionNegotiation", Field::Own),
        Key::new("extensionName", Field::Own),
        Key::remote("oauth", Field::Own),
        Key::remote("authProviderType", Field::Own),
        Key::remote("targetAudience", Field::Own),
        Key::remote("targetServiceAccount", Field::Own),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    when_type_missing: MissingType::Inferred(Transport::Sse),
    when_both_given: CommandAndUrl::Remote,
    timeout: Some(TimeoutRule { default: 600_000, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced],
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    ..Dialect::PLAIN
};
