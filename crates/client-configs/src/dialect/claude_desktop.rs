//! Claude Desktop: `claude_desktop_config.json` (documentation of the Model Context Protocol). As an app package of Windows,
//! which it is since February 2026, it has a folder of its own (anthropics/claude-code#26073, #25579).

use super::prelude::*;

pub(super) static DIALECT: Dialect = Dialect {
    name: "claude-desktop",
    program: "Claude Desktop",
    files: &[
        FileLocation::LocalAppData(
            "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
        ),
        FileLocation::Config("Claude/claude_desktop_config.json"),
        FileLocation::Named("claude_desktop_config.json"),
    ],
    root_keys: RootKeys::Section(&["globalShortcut", "preferences"]),
    is_desktop: true,
    // "On Windows, wrap `npx` with `cmd /c`" (modelcontextprotocol/servers#3659, 2026-03-21).
    batch_files: BatchFiles::Unreliable,
    keys: keys! { All "command" Command, "args" Args, "env" Env },
    transports: &[("stdio", Transport::Stdio)],
    when_type_missing: MissingType::Process,
    policy: Policy { environment: Environment::SDK, ..Policy::USUAL },
    ..Dialect::PLAIN
};
