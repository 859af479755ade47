//! The engine of aidk: servers as Cursor writes them, or in full with `transport`, `connection` and `auth`.

use super::{Dialect, Field, Key, Of, Syntax, Untyped};
use crate::{
    config::{
        json::LibertyKind,
        policy::{ApprovalRule, BothFilters, Duplicates, Environment, Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };
const CONNECTION: &[Key] = &[
    Key::of("command", Field::Command, PROCESS),
    Key::of("args", Field::Args, PROCESS),
    Key::of("env", Field::Env, PROCESS),
    Key::of("cwd", Field::Cwd, PROCESS),
    Key::of("url", Field::Url(None), REMOTE),
    Key::of("headers", Field::Headers, REMOTE),
];

const AUTH: &[Key] = &[Key::new("type", Field::AuthKind), Key::new("token", Field::Bearer)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "engine",
    program: "aidk engine",
    syntax: Syntax::Json(&[
        LibertyKind::Comment,
        LibertyKind::TrailingComma,
        LibertyKind::SingleQuotes,
        LibertyKind::BareKey,
    ]),
    keys: &[
        Key::new("serverName", Field::Own),
        Key::new("transport", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::new("connection", Field::Object(CONNECTION)),
        Key::of("auth", Field::Object(AUTH), REMOTE),
    ],
    // Over HTTP it is Streamable HTTP.
    transports: &[
        ("stdio", Transport::Stdio),
        ("sse", Transport::Sse),
        ("websocket", Transport::Ws),
        ("websocket", Transport::Http),
    ],
    untyped: Untyped::Process,
    policy: Policy {
        both_filters: BothFilters::IncludeWins,
        naming: Naming::Bare,
        duplicates: Duplicates::LastWins,
        approval: ApprovalRule::Never,
        environment: Environment::SDK,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
