//! Cline: `cline_mcp_settings.json` (read in cline/cline 4.1.13, August 2026).

use super::{
    Dialect, Empty, Field, Key, Of, Outside, Place, Places, Syntax, TimeoutRule, Unset, Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        json::LibertyKind,
        policy::{Environment, Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

const CLIENT: &[Key] = &[Key::new("clientId", Field::ClientId), Key::new("clientSecret", Field::ClientSecret)];

/// What `cline mcp add` writes: the connection in an object of its own.
const NESTED: &[Key] = &[
    Key::new("type", Field::Transport),
    Key::of("command", Field::Command, PROCESS),
    Key::of("args", Field::Args, PROCESS),
    Key::of("cwd", Field::Cwd, PROCESS),
    Key::of("env", Field::Env, PROCESS),
    Key::of("url", Field::Url(None), REMOTE),
    Key::of("headers", Field::Headers, REMOTE),
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "cline",
    program: "Cline",
    syntax: Syntax::Json(&[LibertyKind::Nothing]),
    files: &[
        Place::Home(".cline/data/settings/cline_mcp_settings.json"),
        Place::Config("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        Place::Named("cline_mcp_settings.json"),
    ],
    may_be_empty: true,
    keys: &[
        Key::new("type", Field::Transport),
        Key::new("transportType", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("transport", Field::Object(NESTED)),
        Key::new("disabled", Field::Disabled),
        Key::new("timeout", Field::Timeout),
        Key::new("autoApprove", Field::AlwaysAllow),
        Key::new("remoteConfigured", Field::Own),
        Key::of("oauth", Field::Own, REMOTE),
        Key::of("oauthClient", Field::Object(CLIENT), REMOTE),
        Key::new("metadata", Field::Own),
    ],
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("streamableHttp", Transport::Http)],
    typed_objects: true,
    untyped: Untyped::Inferred(Transport::Sse),
    timeout: Some(TimeoutRule {
        unit: 1000,
        default: 60,
        least: 1,
        most: 3600,
        whole: false,
        outside: Outside::Clamped,
    }),
    // The extension replaces them; the command line does not.
    variables: VariableRule {
        forms: &[Form::Env],
        places: Places::Everywhere,
        unset: Unset::Kept,
        empty: Empty::Set,
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Bare, environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
