//! LibreChat: the section `mcpServers` of `librechat.yaml` (read in danny-avila/LibreChat).

use super::{
    Beside, Dialect, Empty, Field, Files, Key, Kind, Of, Outside, Place, Places, RootKeys, Syntax, Template,
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

pub(super) static DIALECT: Dialect = Dialect {
    name: "librechat",
    program: "LibreChat",
    syntax: Syntax::Yaml,
    files: &[Place::Project("librechat.yaml"), Place::Project("librechat.yml")],
    root_keys: RootKeys::Section(&["endpoints", "mcpSettings", "interface", "registration"]),
    strict_files: Files::All,
    beside: &[Beside { key: "version", value: "1.2.1", required: true }],
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("stderr", Field::Setting(Kind::WordOrCount(&["pipe", "ignore", "inherit"])), PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
        Key::new("timeout", Field::CallTimeout),
        Key::new("initTimeout", Field::Setting(Kind::Count(0))),
        Key::of("sseReadTimeout", Field::Setting(Kind::Count(1)), REMOTE),
        Key::new("title", Field::Setting(Kind::Plain)),
        Key::new("description", Field::Setting(Kind::Text)),
        Key::new("startup", Field::Setting(Kind::Flag)),
        Key::new("iconPath", Field::Setting(Kind::Text)),
        Key::new("chatMenu", Field::Setting(Kind::Flag)),
        Key::new("serverInstructions", Field::Setting(Kind::TextOrFlag)),
        Key::new("requiresOAuth", Field::Setting(Kind::Flag)),
        Key::new("oauth", Field::Setting(Kind::Object)),
        Key::new("oauth_headers", Field::Setting(Kind::Pairs)),
        Key::new("apiKey", Field::Setting(Kind::Object)),
        Key::new("obo", Field::Setting(Kind::Object)),
        Key::new("customUserVars", Field::Setting(Kind::Object)),
    ],
    required: &["args"],
    transports: &[
        ("stdio", Transport::Stdio),
        ("streamable-http", Transport::Http),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
        ("websocket", Transport::Ws),
    ],
    untyped: Untyped::Inferred(Transport::Sse),
    dates: true,
    timeout: Some(TimeoutRule {
        unit: 1,
        default: 60_000,
        least: 0,
        most: u64::MAX,
        whole: true,
        outside: Outside::Rejected,
    }),
    variables: VariableRule {
        forms: &[Form::Braced],
        blocked: &[
            "JWT_SECRET",
            "JWT_REFRESH_SECRET",
            "CREDS_KEY",
            "CREDS_IV",
            "MEILI_MASTER_KEY",
            "MONGO_URI",
            "REDIS_URI",
            "REDIS_PASSWORD",
        ],
        places: Places::In(&[Field::Env, Field::Url(None), Field::Args, Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Unset,
        // `{{LIBRECHAT_USER_ID}}`, and what it asks each user for.
        template: Some(Template {
            open: "{{",
            close: "}}",
            prefix: "",
            described: Some(("LIBRECHAT_", "customUserVars")),
        }),
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("{tool}_mcp_{server}"), environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
