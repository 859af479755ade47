//! LibreChat: the section `mcpServers` of `librechat.yaml` (read in danny-avila/LibreChat).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "librechat",
    program: "LibreChat",
    syntax: Syntax::Yaml,
    files: &[FileLocation::Project("librechat.yaml"), FileLocation::Project("librechat.yml")],
    root_keys: RootKeys::Section(&["endpoints", "mcpSettings", "interface", "registration"]),
    strict_files: Files::All,
    companions: &[Companion { key: "version", value: "1.2.1", required: true }],
    keys: &[
        Key::new("type", Field::Transport),
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::process("stderr", Field::Setting(Kind::WordOrCount(&["pipe", "ignore", "inherit"]))),
        Key::remote("url", Field::Url(None)),
        Key::remote("headers", Field::Headers),
        Key::new("timeout", Field::CallTimeout),
        Key::new("initTimeout", Field::Setting(Kind::Count(0))),
        Key::remote("sseReadTimeout", Field::Setting(Kind::Count(1))),
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
    required_keys: &["args"],
    transports: &[
        ("stdio", Transport::Stdio),
        ("streamable-http", Transport::Http),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
        ("websocket", Transport::Ws),
    ],
    when_type_missing: WhenTypeMissing::Inferred(Transport::Sse),
    timeout: Some(TimeoutRule { default: 60_000, whole: true, ..TimeoutRule::MILLISECONDS }),
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
        scope: VariableScope::Fields(&[Field::Env, Field::Url(None), Field::Args, Field::Headers]),
        unset: Unset::Kept,
        empty: Empty::Unset,
        // `{{LIBRECHAT_USER_ID}}`, and what it asks each user for.
        template: Some(Template { open: "{{", close: "}}", prefix: "" }),
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("{tool}_mcp_{server}"), environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
