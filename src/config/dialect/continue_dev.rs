//! Continue: the list `mcpServers` of its `config.yaml` (read in continuedev/continue, June 2026).

use super::{
    Beside, Collection, Dialect, Empty, Field, Key, Of, Outside, Place, Places, RootKeys, Syntax, Template,
    TimeoutRule, Unset, Untyped, VariableRule,
};
use crate::{
    config::{
        Form,
        policy::{Environment, Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };
const REQUEST: &[Key] = &[
    Key::new("headers", Field::Headers),
    Key::new("timeout", Field::Own),
    Key::new("verifySsl", Field::Own),
    Key::new("caBundlePath", Field::Own),
    Key::new("proxy", Field::Own),
    Key::new("extraBodyProperties", Field::Own),
    Key::new("noProxy", Field::Own),
    Key::new("clientCertificate", Field::Own),
];

pub(super) static DIALECT: Dialect = Dialect {
    name: "continue",
    program: "Continue",
    syntax: Syntax::Yaml,
    files: &[
        Place::Home(".continue/config.yaml"),
        Place::Home(".continue/config.yml"),
        Place::Section(".continue/mcpServers/*.yaml"),
        Place::Section(".continue/mcpServers/*.yml"),
    ],
    collection: Collection::List { elsewhere: Some("uses") },
    root_keys: RootKeys::Section(&["schema", "rules", "prompts", "docs", "context"]),
    keys: &[
        Key::new("name", Field::Name),
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("cwd", Field::Cwd, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("apiKey", Field::Own, REMOTE),
        Key::of("requestOptions", Field::Object(REQUEST), REMOTE),
        Key::new("connectionTimeout", Field::Timeout),
        Key::new("serverName", Field::Own),
        Key::new("faviconUrl", Field::Own),
        Key::new("sourceFile", Field::Own),
        Key::new("sourceSlug", Field::Own),
    ],
    beside: &[
        Beside { key: "name", value: "MCP servers", required: true },
        Beside { key: "version", value: "1.0.0", required: true },
    ],
    transports: &[("stdio", Transport::Stdio), ("streamable-http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Inferred(Transport::Http),
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 20_000,
        least: 1,
        most: u64::MAX,
        whole: false,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Secret],
        in_text: true,
        places: Places::Everywhere,
        unset: Unset::Kept,
        empty: Empty::Nothing,
        template: Some(Template { open: "${{", close: "}}", prefix: "inputs.", described: None }),
        ..VariableRule::NONE
    },
    policy: Policy {
        naming: Naming::Bare,
        environment: Environment::Only(&["HOME", "USER", "USERPROFILE", "LOGNAME", "USERNAME", "PATH"]),
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
