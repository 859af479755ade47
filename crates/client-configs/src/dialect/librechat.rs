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
        Key::process("stderr", Field::Setting(SettingType::WordOrCount(&["pipe", "ignore", "inherit"]))),
        Key::remote("url", Field::Url(None)),
        Key::remote("headers", Field::Headers),
        Key::new("timeout", Field::CallTimeout),
        Key::new("initTimeout", Field::Setting(SettingType::Count(0))),
        Key::remote("sseReadTimeout", Field::Setting(SettingType::Count(1))),
        Key::new("title", Field::Setting(SettingType::Plain)),
        Key::new("description", Field::Setting(SettingType::Text)),
        Key::new("startup", Field::Setting(SettingType::Flag)),
        Key::new("iconPath", Field::Setting(SettingType::Text)),
        Key::new("chatMenu", Field::Setting(SettingType::Flag)),
        Key::new("serverInstructions", Field::Setting(SettingType::TextOrFlag)),
        Key::new("requiresOAuth", Field::Setting(SettingType::Flag)),
        Key::new("oauth", Field::Setting(SettingType::Object)),
        Key::new("oauth_headers", Field::Setting(SettingType::Pairs)),
        Key::new("apiKey", Field::Setting(SettingType::Object)),
        Key::new("obo", Field::Setting(SettingType::Object)),
        Key::new("customUserVars", Field::Setting(SettingType::Object)),
    ],
    required_keys: &["args"],
    transports: &[
        ("stdio", Transport::Stdio),
        ("streamable-http", Transport::Http),
        ("http", Transport::Http),
        ("sse", Transport::Sse),
        ("websocket", Transport::Ws),
    ],
    when_type_missing: MissingType::Inferred(Transport::Sse),
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
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Unset,
        // `{{LIBRECHAT_USER_ID}}`, and what it asks each user for.
        template: Some(Template { open: "{{", close: "}}", prefix: "" }),
        ..VariableRule::NONE
    },
    policy: Policy { naming: Naming::Qualified("{tool}_mcp_{server}"), environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
