//! Claude Code: `.mcp.json` of a project, and the same section in its own settings (documentation of v2.1.240).

use super::prelude::*;

const OAUTH: &[Key] = keys! {
    All "clientId" ClientId, "callbackPort" CallbackPort, "authServerMetadataUrl" MetadataUrl, "scopes" ScopeText;
};

/// There it has all but the servers.
const SETTINGS: &[FileLocation] =
    &[FileLocation::Section(".claude/settings.json"), FileLocation::Section(".claude/settings.local.json")];

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-code",
    program: "Claude Code",
    files: &[
        FileLocation::Project(".mcp.json"),
        FileLocation::Home(".claude.json"),
        FileLocation::Named("managed-mcp.json"),
        FileLocation::Section(".claude-plugin/plugin.json"),
        SETTINGS[0],
        SETTINGS[1],
    ],
    files_without_servers: SETTINGS,
    bare_map_note: Some("only a plugin's `.mcp.json` may leave out `mcpServers`; a project's needs it"),
    root_keys: RootKeys::Section(&[]),
    signature_references: &["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "user_config"],
    links_to_file: true,
    projects: Some("projects"),
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers, "headersHelper" Own, "oauth" Object(OAUTH);
        All "timeout" CallTimeout, "request_timeout_ms" Own, "alwaysLoad" Own;
    },
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
        ("ws", Transport::Ws),
    ],
    when_type_missing: MissingType::Process,
    timeout: Some(TimeoutRule {
        default: 100_000_000,
        least: 1000,
        outside: OutOfRange::Ignored,
        ..TimeoutRule::MILLISECONDS
    }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Defaulted],
        known: &["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "user_config"],
        scope: VariableScope::Fields(&[Field::Command, Field::Args, Field::Env, Field::Url(None), Field::Headers]),
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    reserved_names: &["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"],
    ignores_empty_url: true,
    // It said that `npx` needs `cmd /c` until 2.1.118; servers of plugins still did in 2.1.139 (#58510).
    batch_files: BatchFiles::Unreliable,
    ..Dialect::PLAIN
};
