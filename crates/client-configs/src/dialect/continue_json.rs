//! Continue: the JSON files in `.continue/mcpServers` (read in continuedev/continue, June 2026). They are as other programs
//! have them; the YAML files beside them are those of the dialect `continue`.

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "continue-json",
    program: "Continue",
    syntax: Syntax::Json(&[SyntaxExtensionKind::Comment]),
    // The latter has servers in a form of its own, which is deprecated.
    files: &[FileLocation::Section(".continue/mcpServers/*.json"), FileLocation::Section(".continue/config.json")],
    root_keys: RootKeys::Section(&[]),
    single_server_file: true,
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers;
    },
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    when_type_missing: MissingType::Inferred(Transport::Http),
    when_both_given: CommandAndUrl::Remote,
    variables: VariableRule {
        forms: &[Form::Braced],
        scope: VariableScope::Fields(&[Field::Env]),
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
