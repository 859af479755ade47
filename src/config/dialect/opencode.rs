//! OpenCode, and Kilo Code since it is built on it: the section `mcp` (read in Kilo-Org/kilocode, 2026).

use super::{
    Dialect, Empty, Field, Files, Key, Kind, Of, Outside, Place, Places, RootKeys, Syntax, Template, TimeoutRule,
    Unset, Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        json::LibertyKind,
        policy::{Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: true };
const REMOTE: Of = Of::Remote { strict: true };

const OAUTH: &[Key] = &[
    Key::of("clientId", Field::ClientId, REMOTE),
    Key::of("clientSecret", Field::ClientSecret, REMOTE),
    Key::of("scope", Field::ScopeText, REMOTE),
    // Since the rewrite of its schemas.
    Key::of("callbackPort", Field::CallbackPort, REMOTE),
    Key::of("redirectUri", Field::Setting(Kind::Text), REMOTE),
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "opencode",
    program: "OpenCode",
    syntax: Syntax::Json(&[LibertyKind::Comment, LibertyKind::TrailingComma, LibertyKind::BareReference]),
    files: &[
        Place::Project("opencode.json"),
        Place::Project("opencode.jsonc"),
        Place::Project("kilo.json"),
        Place::Project("kilo.jsonc"),
        Place::Xdg("opencode/opencode.json"),
        Place::Xdg("opencode/opencode.jsonc"),
        Place::Xdg("kilo/kilo.json"),
        Place::Xdg("kilo/kilo.jsonc"),
    ],
    roots: &[&["mcp"]],
    root_keys: RootKeys::Section(&[]),
    strict_files: Files::All,
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::CommandLine, PROCESS),
        Key::of("environment", Field::Env, PROCESS),
        // Since the rewrite of its schemas.
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::of("oauth", Field::Object(OAUTH), REMOTE),
        // `false`, if nobody is to be asked.
        Key::of("oauth", Field::Setting(Kind::Flag), REMOTE),
        Key::new("enabled", Field::Enabled),
        Key::new("timeout", Field::Timeout),
    ],
    strict: true,
    transports: &[("local", Transport::Stdio), ("remote", Transport::Http)],
    untyped: Untyped::Rejected,
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 5000,
        least: 1,
        most: u64::MAX,
        whole: true,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Curly],
        in_text: true,
        places: Places::Everywhere,
        unset: Unset::Empty,
        empty: Empty::Nothing,
        template: Some(Template { open: "{file:", close: "}", prefix: "", described: None }),
        ..VariableRule::NONE
    },
    partial: true,
    policy: Policy { naming: Naming::Qualified("{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
