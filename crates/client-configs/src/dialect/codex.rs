//! Codex: `[mcp_servers.<name>]` of its `config.toml` (read in openai/codex `codex-rs/config/src/mcp_types.rs` @00b17c2,
//! 2026-11-23).

use super::prelude::*;

const OAUTH: &[Key] = &[Key::remote("client_id", Field::ClientId)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "codex",
    program: "Codex",
    syntax: Syntax::Toml,
    files: &[FileLocation::Project(".codex/config.toml"), FileLocation::Home(".codex/config.toml")],
    roots: &[&["mcp_servers"]],
    root_keys: RootKeys::Section(&["model", "model_provider", "model_reasoning_effort", "profiles"]),
    rejects_misplaced_keys: true,
    keys: &[
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::process("env_vars", Field::Own),
        Key::process("cwd", Field::Cwd),
        Key::remote("url", Field::Url(None)),
        Key::remote("http_headers", Field::Headers),
        Key::remote("env_http_headers", Field::Setting(SettingType::Pairs)),
        Key::remote("bearer_token_env_var", Field::Setting(SettingType::Text)),
        // "bearer_token is not supported for …", whatever the transport.
        Key::new("bearer_token", Field::RejectedBearer("bearer_token_env_var")),
        Key::remote("oauth", Field::Object(OAUTH)),
        Key::remote("oauth_resource", Field::Setting(SettingType::Text)),
        Key::new("scopes", Field::Own),
        Key::new("enabled", Field::Enabled),
        Key::new("required", Field::Setting(SettingType::Flag)),
        Key::new("startup_timeout_sec", Field::StartTimeout),
        Key::new("startup_timeout_ms", Field::Setting(SettingType::Count(0))),
        Key::new("tool_timeout_sec", Field::CallTimeout),
        Key::new("enabled_tools", Field::Include),
        Key::new("disabled_tools", Field::Exclude),
        Key::new("supports_parallel_tool_calls", Field::Setting(SettingType::Flag)),
        Key::new("default_tools_approval_mode", Field::Setting(SettingType::Text)),
        Key::new("experimental_environment", Field::Setting(SettingType::Text)),
        Key::new("tools", Field::Setting(SettingType::Object)),
    ],
    transports: &[("stdio", Transport::Stdio), ("streamable_http", Transport::Http)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    when_both_given: CommandAndUrl::Rejected,
    timeout: Some(TimeoutRule { default: 300, ..TimeoutRule::SECONDS }),
    policy: Policy {
        environment: Environment::Only {
            unix: &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"],
            // `WINDOWS_CORE_ENV_VARS` in `codex-rs/protocol/src/shell_environment.rs`, 2026.
            windows: &[
                "PATH",
                "PATHEXT",
                "SHELL",
                "COMSPEC",
                "SYSTEMROOT",
                "WINDIR",
                "SYSTEMDRIVE",
                "USERNAME",
                "USERDOMAIN",
                "USERPROFILE",
                "HOMEDRIVE",
                "HOMEPATH",
                "PROGRAMFILES",
                "PROGRAMFILES(X86)",
                "PROGRAMW6432",
                "PROGRAMDATA",
                "LOCALAPPDATA",
                "APPDATA",
                "TEMP",
                "TMP",
                "TMPDIR",
                "POWERSHELL",
                "PWSH",
            ],
        },
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
