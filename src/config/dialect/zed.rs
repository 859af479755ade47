//! Zed: the section `context_servers` of its `settings.json` (its documentation, and its settings in zed-industries/zed,
//! 2026).

use super::{Dialect, Field, Key, Kind, Of, Outside, Place, RootKeys, Syntax, TimeoutRule, Untyped};
use crate::{config::json::LibertyKind, transport::Transport};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

/// A command as older versions had it.
const PROGRAM: &[Key] = &[Key::new("path", Field::Command), Key::new("args", Field::Args), Key::new("env", Field::Env)];

/// A client that the authorization server knows already.
const CLIENT: &[Key] = &[Key::new("client_id", Field::ClientId), Key::new("client_secret", Field::ClientSecret)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "zed",
    program: "Zed",
    syntax: Syntax::Json(&[LibertyKind::Comment, LibertyKind::TrailingComma]),
    files: &[Place::Project(".zed/settings.json"), Place::Xdg("zed/settings.json")],
    roots: &[&["context_servers"]],
    root_keys: RootKeys::Section(&[]),
    keys: &[
        Key::of("command", Field::Command, PROCESS),
        Key::of("command", Field::Object(PROGRAM), PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("oauth", Field::Object(CLIENT), REMOTE),
        Key::new("timeout", Field::CallTimeout),
        Key::of("remote", Field::Setting(Kind::Flag), PROCESS),
        Key::new("source", Field::Own),
        Key::new("enabled", Field::Enabled),
        Key::new("settings", Field::Own),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    untyped: Untyped::Inferred(Transport::Http),
    timeout: Some(TimeoutRule {
        unit: 1000,
        default: 60,
        least: 0,
        most: u64::MAX,
        whole: true,
        outside: Outside::Rejected,
    }),
    null_env: true,
    partial: true,
    ..Dialect::PLAIN
};
