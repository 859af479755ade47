//! Amazon Q Developer CLI: `mcp.json` (read in aws/amazon-q-developer-cli 1.19.7, April 2026).

use super::{
    Both, Collection, Dialect, Empty, Field, Key, Of, Outside, Place, Places, RootKeys, Syntax, TimeoutRule, Unset,
    Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        policy::{Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "amazon-q",
    program: "Amazon Q",
    syntax: Syntax::Json(&[]),
    files: &[Place::Project(".amazonq/mcp.json"), Place::Home(".aws/amazonq/mcp.json")],
    roots: &[&["mcpServers"]],
    bare: None,
    collection: Collection::Map,
    root_keys: RootKeys::Known(&[]),
    defaults: None,
    switch: None,
    projects: None,
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("oauthScopes", Field::Scopes, REMOTE),
        Key::of("oauth", Field::Own, REMOTE),
        Key::new("timeout", Field::Timeout),
        Key::new("disabled", Field::Disabled),
    ],
    beside: &[],
    required: &[],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http)],
    guesses: false,
    coerces: false,
    untyped: Untyped::Process,
    both: Both::Started,
    timeout: Some(TimeoutRule { unit: 1, default: 120_000, least: 0, most: u64::MAX, outside: Outside::Rejected }),
    variables: VariableRule {
        forms: &[Form::Env],
        known: &[],
        whole: false,
        places: Places::In(&[Field::Env, Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Nothing,
    },
    loose_values: false,
    name_characters: None,
    reserved_names: &[],
    schemes: &[],
    empty_url: false,
    partial: false,
    expands_home: false,
    agent: false,
    policy: Policy { naming: Naming::Qualified("{server}___{tool}"), ..Policy::USUAL },
};
