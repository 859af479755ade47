//! Gemini CLI: the section `mcpServers` of its `settings.json` (read in google-gemini/gemini-cli, August 2026).

use super::{
    Both, Dialect, Empty, Field, Key, NameLists, Of, Outside, Place, Places, RootKeys, Syntax, TimeoutRule, Unset,
    Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        json::LibertyKind,
        policy::{Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "gemini",
    program: "Gemini CLI",
    syntax: Syntax::Json(&[LibertyKind::Comment]),
    files: &[
        Place::Project(".gemini/settings.json"),
        Place::Home(".gemini/settings.json"),
        Place::Named("gemini-extension.json"),
    ],
    root_keys: RootKeys::Section(&["selectedAuthType", "contextFileName", "security", "general", "ui", "hooks", "mcp"]),
    name_lists: Some(NameLists { allowed: &["mcp", "allowed"], excluded: &["mcp", "excluded"] }),
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("httpUrl", Field::Url(Some(Transport::Http)), REMOTE),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("tcp", Field::Own),
        Key::new("timeout", Field::Timeout),
        Key::new("trust", Field::Trust),
        Key::new("description", Field::Own),
        Key::new("includeTools", Field::Include),
        Key::new("excludeTools", Field::Exclude),
        Key::new("extension", Field::Own),
        Key::of("oauth", Field::Own, REMOTE),
        Key::of("authProviderType", Field::Own, REMOTE),
        Key::of("targetAudience", Field::Own, REMOTE),
        Key::of("targetServiceAccount", Field::Own, REMOTE),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    // The settings are used as they are written, whatever their validation has to say.
    guesses: true,
    coerces: true,
    // Rules for tools take what stands before the first one for the name.
    name_discouraged: Some('_'),
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Dialled,
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 600_000,
        least: 0,
        most: u64::MAX,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced, Form::Defaulted],
        known: &["extensionPath", "workspacePath", "pathSeparator", "/"],
        places: Places::Everywhere,
        unset: Unset::Kept,
        empty: Empty::Set,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("mcp_{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
