//! The engine of aidk: servers as Cursor writes them, or in full with `transport`, `connection` and `auth`.

use super::{Both, Collection, Dialect, Empty, Field, Key, Of, Places, RootKeys, Syntax, Unset, Untyped, VariableRule};
use crate::{
    config::{
        json::LibertyKind,
        policy::{BothFilters, Environment, Naming, Policy},
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
    files: &[],
    roots: &[&["mcpServers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    switch: None,
    projects: None,
    keys: &[
        Key::new("serverName", Field::Own),
        Key::new("transport", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::new("connection", Field::Object(CONNECTION)),
        Key::of("auth", Field::Object(AUTH), REMOTE),
    ],
    beside: &[],
    required: &[],
    transports: &[("stdio", Transport::Stdio), ("sse", Transport::Sse), ("websocket", Transport::Ws)],
    guesses: false,
    coerces: false,
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: None,
    variables: VariableRule {
        forms: &[],
        known: &[],
        whole: false,
        places: Places::Nowhere,
        unset: Unset::Kept,
        empty: Empty::Nothing,
    },
    loose_values: false,
    name_characters: None,
    reserved_names: &[],
    schemes: &["http", "https"],
    empty_url: false,
    partial: false,
    expands_home: false,
    agent: false,
    policy: Policy {
        both_filters: BothFilters::IncludeWins,
        naming: Naming::Bare,
        environment: Environment::SDK,
        ..Policy::USUAL
    },
};
