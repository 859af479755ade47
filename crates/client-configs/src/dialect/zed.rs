//! Zed: the section `context_servers` of its `settings.json` (its documentation, and its settings in zed-industries/zed,
//! 2026; its folders in `crates/paths/src/paths.rs` @010c9b6).

use super::prelude::*;

/// A command as older versions had it.
const PROGRAM: &[Key] = keys! { All "path" Command, "args" Args, "env" Env };

/// A client that the authorization server knows already.
const CLIENT: &[Key] = keys! { All "client_id" ClientId, "client_secret" ClientSecret };

pub(super) static DIALECT: Dialect = Dialect {
    name: "zed",
    program: "Zed",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment, SyntaxExtensionKind::TrailingComma]),
    files: &[FileLocation::Project(".zed/settings.json"), FileLocation::XdgOrAppData("zed/settings.json")],
    roots: &[&["context_servers"]],
    root_keys: RootKeys::Section(&[]),
    keys: keys! {
        Process "command" Command, "command" Object(PROGRAM), "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers, "oauth" Object(CLIENT);
        All "timeout" CallTimeout;
        Process "remote" Setting(SettingType::Flag);
        All "source" Own, "enabled" Enabled, "settings" Own;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    timeout: Some(TimeoutRule { default: 60, whole: true, ..TimeoutRule::SECONDS }),
    null_env: true,
    allows_partial_server: true,
    policy: Policy { naming: Naming::Bare, duplicates: Duplicates::Qualified, ..Policy::USUAL },
    ..Dialect::PLAIN
};
