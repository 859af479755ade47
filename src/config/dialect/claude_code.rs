//! Claude Code: `.mcp.json` of a project, and the same section in its own settings (documentation of v2.1.240).

use super::{
    Dialect, Empty, Field, Key, Of, Outside, Place, Places, RootKeys, TimeoutRule, Unset, Untyped, VariableRule,
};
use crate::{config::Form, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const OAUTH: &[Key] = &[
    Key::new("clientId", Field::ClientId),
    Key::new("callbackPort", Field::CallbackPort),
    Key::new("authServerMetadataUrl", Field::MetadataUrl),
    Key::new("scopes", Field::ScopeText),
];

/// There it has all but the servers.
const SETTINGS: &[Place] = &[Place::Section(".claude/settings.json"), Place::Section(".claude/settings.local.json")];

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-code",
    program: "Claude Code",
    files: &[
        Place::Project(".mcp.json"),
        Place::Home(".claude.json"),
        Place::Named("managed-mcp.json"),
        Place::Section(".claude-plugin/plugin.json"),
        SETTINGS[0],
        SETTINGS[1],
    ],
    not_in: SETTINGS,
    bare: Some("only a plugin's `.mcp.json` may leave out `mcpServers`; a project's needs it"),
    root_keys: RootKeys::Section(&[]),
    marks: &["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "user_config"],
    is_linked: true,
    projects: Some("projects"),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("headersHelper", Field::Own, REMOTE),
        Key::of("oauth", Field::Object(OAUTH), REMOTE),
        Key::new("timeout", Field::CallTimeout),
        Key::new("request_timeout_ms", Field::Own),
        Key::new("alwaysLoad", Field::Own),
    ],
    transports: &[
        ("stdio", Transport::Stdio),
        ("http", Transport::Http),
        ("streamable-http", Transport::Http),
        ("sse", Transport::Sse),
        ("ws", Transport::Ws),
    ],
    untyped: Untyped::Process,
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 100_000_000,
        least: 1000,
        most: u64::MAX,
        whole: false,
        outside: Outside::Ignored,
    }),
    variables: VariableRule {
        forms: &[Form::Braced, Form::Defaulted],
        known: &["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "user_config"],
        places: Places::In(&[Field::Command, Field::Args, Field::Env, Field::Url(None), Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Nothing,
        ..VariableRule::NONE
    },
    reserved_names: &["workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"],
    empty_url: true,
    ..Dialect::PLAIN
};
