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
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env,
            "stderr" Setting(SettingType::WordOrCount(&["pipe", "ignore", "inherit"]));
        Remote "url" Url(None), "headers" Headers;
        All "timeout" CallTimeout, "initTimeout" Setting(SettingType::Count(0));
        Remote "sseReadTimeout" Setting(SettingType::Count(1));
        All "title" Setting(SettingType::Plain), "description" Setting(SettingType::Text),
            "startup" Setting(SettingType::Flag), "iconPath" Setting(SettingType::Text),
            "chatMenu" Setting(SettingType::Flag), "serverInstructions" Setting(SettingType::TextOrFlag),
            "requiresOAuth" Setting(SettingType::Flag), "oauth" Setting(SettingType::Object),
            "oauth_headers" Setting(SettingType::Pairs), "apiKey" Setting(SettingType::Object),
            "obo" Setting(SettingType::Object), "customUserVars" Setting(SettingType::Object);
    },
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
