//! Codex: `[mcp_servers.<name>]` of its `config.toml` (read in openai/codex `codex-rs/config/src/mcp_types.rs` @00b17c2,
//! 2026-11-23).

use super::prelude::*;

const OAUTH: &[Key] = keys! { Remote "client_id" ClientId };

pub(super) static DIALECT: Dialect = Dialect {
    name: "codex",
    program: "Codex",
    syntax: Syntax::Toml,
    files: &[FileLocation::Project(".codex/config.toml"), FileLocation::Home(".codex/config.toml")],
    roots: &[&["mcp_servers"]],
    root_keys: RootKeys::Section(&["model", "model_provider", "model_reasoning_effort", "profiles"]),
    rejects_misplaced_keys: true,
    keys: keys! {
        Process "command" Command, "args" Args, "env" Env, "env_vars" Own, "cwd" Cwd;
        Remote "url" Url(None), "http_headers" Headers, "env_http_headers" Setting(SettingType::Pairs),
            "bearer_token_env_var" Setting(SettingType::Text);
        // "bearer_token is not supported for …", whatever the transport.
        All "bearer_token" RejectedBearer("bearer_token_env_var");
        Remote "oauth" Object(OAUTH), "oauth_resource" Setting(SettingType::Text);
        All "scopes" Own, "enabled" Enabled, "required" Setting(SettingType::Flag), "startup_timeout_sec" StartTimeout,
            "startup_timeout_ms" Setting(SettingType::Count(0)), "tool_timeout_sec" CallTimeout,
            "enabled_tools" Include, "disabled_tools" Exclude,
            "supports_parallel_tool_calls" Setting(SettingType::Flag),
            "default_tools_approval_mode" Setting(SettingType::Text),
            "experimental_environment" Setting(SettingType::Text), "tools" Setting(SettingType::Object);
    },
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
