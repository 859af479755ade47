//! OpenCode, and Kilo Code since it is built on it: the section `mcp` (read in Kilo-Org/kilocode, 2026).

use super::prelude::*;

const OAUTH: &[Key] = keys! {
    Remote "clientId" ClientId, "clientSecret" ClientSecret, "scope" ScopeText;
    // Since the rewrite of its schemas.
    Remote "callbackPort" CallbackPort, "redirectUri" Setting(SettingType::Text);
};

pub(super) static DIALECT: Dialect = Dialect {
    name: "opencode",
    program: "OpenCode",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment, SyntaxExtensionKind::TrailingComma]),
    files: &[
        FileLocation::Project("opencode.json"),
        FileLocation::Project("opencode.jsonc"),
        FileLocation::Project("kilo.json"),
        FileLocation::Project("kilo.jsonc"),
        FileLocation::Xdg("opencode/opencode.json"),
        FileLocation::Xdg("opencode/opencode.jsonc"),
        FileLocation::Xdg("kilo/kilo.json"),
        FileLocation::Xdg("kilo/kilo.jsonc"),
    ],
    roots: &[&["mcp"]],
    root_keys: RootKeys::Section(&[]),
    strict_files: Files::All,
    rejects_misplaced_keys: true,
    keys: keys! {
        All "type" Transport;
        Process "command" CommandLine, "environment" Env;
        // Since the rewrite of its schemas.
        Process "cwd" Cwd;
        Remote "url" Url(None), "headers" Headers, "oauth" Object(OAUTH);
        // `false` if OAuth is off.
        Remote "oauth" Setting(SettingType::Flag);
        All "enabled" Enabled, "timeout" Timeout;
    },
    rejects_unknown_keys: true,
    transports: &[("local", Transport::Stdio), ("remote", Transport::Http)],
    when_type_missing: MissingType::Rejected,
    timeout: Some(TimeoutRule { default: 5000, least: 1, whole: true, ..TimeoutRule::MILLISECONDS }),
    variables: VariableRule {
        forms: &[Form::Curly],
        in_text: true,
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Empty,
        empty: EmptyVariable::Nothing,
        template: Some(Template { open: "{file:", close: "}", prefix: "" }),
        ..VariableRule::NONE
    },
    allows_partial_server: true,
    policy: Policy { naming: Naming::Qualified("{server}_{tool}"), ..Policy::USUAL },
    ..Dialect::PLAIN
};
