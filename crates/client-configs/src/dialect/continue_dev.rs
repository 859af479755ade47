//! Continue: the list `mcpServers` of its `config.yaml` (read in continuedev/continue, June 2026).

use super::prelude::*;

const REQUEST: &[Key] = keys! {
    All "headers" Headers, "timeout" Own, "verifySsl" Own, "caBundlePath" Own, "proxy" Own, "extraBodyProperties" Own,
        "noProxy" Own, "clientCertificate" Own;
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "continue",
    program: "Continue",
    syntax: Syntax::Yaml,
    files: &[
        FileLocation::Home(".continue/config.yaml"),
        FileLocation::Home(".continue/config.yml"),
        FileLocation::Section(".continue/mcpServers/*.yaml"),
        FileLocation::Section(".continue/mcpServers/*.yml"),
    ],
    collection: Collection::List { elsewhere: Some("uses") },
    root_keys: RootKeys::Section(&["schema", "rules", "prompts", "docs", "context"]),
    keys: keys! {
        All "name" Name, "type" Transport;
        Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
        Remote "url" Url(None), "apiKey" Own, "requestOptions" Object(REQUEST);
        All "connectionTimeout" Timeout, "serverName" Own, "faviconUrl" Own, "sourceFile" Own, "sourceSlug" Own;
    },
    companions: &[
        Companion { key: "name", value: "MCP servers", required: true },
        Companion { key: "version", value: "1.0.0", required: true },
    ],
    transports: &[("stdio", Transport::Stdio), ("streamable-http", Transport::Http), ("sse", Transport::Sse)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    timeout: Some(TimeoutRule { default: 20_000, least: 1, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Secret],
        in_text: true,
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Kept,
        empty: EmptyVariable::Nothing,
        template: Some(Template { open: "${{", close: "}}", prefix: "inputs." }),
        ..VariableRule::NONE
    },
    // `resolveCommandForPlatform` in `MCPConnection.ts` @03d1f26.
    batch_files: BatchFiles::ByCmd,
    policy: Policy {
        naming: Naming::Bare,
        environment: Environment::Only {
            unix: &["HOME", "USER", "USERPROFILE", "LOGNAME", "USERNAME", "PATH"],
            windows: Environment::SDK_ON_WINDOWS,
        },
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
