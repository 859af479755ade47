//! Zed: the section `context_servers` of its `settings.json` (its documentation, and its settings in zed-industries/zed,
//! 2026; its folders in `crates/paths/src/paths.rs` @010c9b6).

use super::prelude::*;

/// A command as older versions had it.
const PROGRAM: &[Key] = &[Key::new("path", Field::Command), Key::new("args", Field::Args), Key::new("env", Field::Env)];

/// A client that the authorization server knows already.
const CLIENT: &[Key] = &[Key::new("client_id", Field::ClientId), Key::new("client_secret", Field::ClientSecret)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "zed",
    program: "Zed",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment, SyntaxExtensionKind::TrailingComma]),
    files: &[FileLocation::Project(".zed/settings.json"), FileLocation::XdgOrAppData("zed/settings.json")],
    roots: &[&["context_servers"]],
    root_keys: RootKeys::Section(&[]),
    keys: &[
        Key::process("command", Field::Command),
        Key::process("command", Field::Object(PROGRAM)),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::remote("url", Field::Url(None)),
        Key::remote("headers", Field::Headers),
        Key::remote("oauth", Field::Object(CLIENT)),
        Key::new("timeout", Field::CallTimeout),
        Key::process("remote", Field::Setting(SettingType::Flag)),
        Key::new("source", Field::Own),
        Key::new("enabled", Field::Enabled),
        Key::new("settings", Field::Own),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    timeout: Some(TimeoutRule { default: 60, whole: true, ..TimeoutRule::SECONDS }),
    null_env: true,
    allows_partial_server: true,
    policy: Policy { naming: Naming::Bare, duplicates: Duplicates::Qualified, ..Policy::USUAL },
    ..Dialect::PLAIN
};
