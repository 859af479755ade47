//! Zed: the section `context_servers` of its `settings.json` (its documentation, 2026).

use super::{
    Both, Collection, Dialect, Empty, Field, Key, Of, Place, Places, RootKeys, Syntax, Unset, Untyped, VariableRule,
};
use crate::{
    config::{json::LibertyKind, policy::Policy},
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

/// A command as older versions had it.
const PROGRAM: &[Key] = &[Key::new("path", Field::Command), Key::new("args", Field::Args), Key::new("env", Field::Env)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "zed",
    program: "Zed",
    syntax: Syntax::Json(&[LibertyKind::Comment, LibertyKind::TrailingComma]),
    files: &[Place::Project(".zed/settings.json"), Place::Xdg("zed/settings.json")],
    roots: &[&["context_servers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Section(&[]),
    defaults: None,
    switch: None,
    projects: None,
    keys: &[
        Key::of("command", Field::Command, PROCESS),
        Key::of("command", Field::Object(PROGRAM), PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("source", Field::Own),
        Key::new("enabled", Field::Enabled),
        Key::new("settings", Field::Own),
    ],
    beside: &[],
    required: &[],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    guesses: false,
    coerces: false,
    untyped: Untyped::Inferred(Transport::Http),
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
    loose_values: true,
    name_characters: None,
    reserved_names: &[],
    schemes: &[],
    empty_url: false,
    partial: true,
    expands_home: false,
    agent: false,
    policy: Policy::USUAL,
};
