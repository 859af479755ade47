//! The profiles that come with the program.

use std::sync::LazyLock;

use crate::Profile;
use rehearse_document::Source;

/// The files, by name: hosts, then providers, then directories.
const FILES: &[(&str, &str)] = &[
    ("chatgpt", include_str!("../profiles/chatgpt.yaml")),
    ("claude-ai", include_str!("../profiles/claude-ai.yaml")),
    ("claude-code", include_str!("../profiles/claude-code.yaml")),
    ("claude-desktop", include_str!("../profiles/claude-desktop.yaml")),
    ("cline", include_str!("../profiles/cline.yaml")),
    ("codex", include_str!("../profiles/codex.yaml")),
    ("cursor", include_str!("../profiles/cursor.yaml")),
    ("gemini-cli", include_str!("../profiles/gemini-cli.yaml")),
    ("goose", include_str!("../profiles/goose.yaml")),
    ("librechat", include_str!("../profiles/librechat.yaml")),
    ("opencode", include_str!("../profiles/opencode.yaml")),
    ("roo", include_str!("../profiles/roo.yaml")),
    ("vscode", include_str!("../profiles/vscode.yaml")),
    ("windsurf", include_str!("../profiles/windsurf.yaml")),
    ("zed", include_str!("../profiles/zed.yaml")),
    ("anthropic", include_str!("../profiles/anthropic.yaml")),
    ("anthropic-mcp-connector", include_str!("../profiles/anthropic-mcp-connector.yaml")),
    ("gemini", include_str!("../profiles/gemini.yaml")),
    ("openai", include_str!("../profiles/openai.yaml")),
    ("openai-strict", include_str!("../profiles/openai-strict.yaml")),
    ("anthropic-directory", include_str!("../profiles/anthropic-directory.yaml")),
    ("mcp-registry", include_str!("../profiles/mcp-registry.yaml")),
    ("openai-directory", include_str!("../profiles/openai-directory.yaml")),
];

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| Profile::parse(&Source::new(format!("{name}.yaml"), *text)).ok();
    FILES.iter().filter_map(parse).collect()
});

/// All profiles that come with the program: hosts, then providers, then directories.
pub fn builtins() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name.
pub fn builtin(name: &str) -> Option<&'static Profile> {
    builtins().iter().find(|profile| profile.name == name)
}

/// The profile of the host with this config dialect.
pub fn builtin_of_dialect(dialect: &str) -> Option<&'static Profile> {
    builtins().iter().find(|profile| profile.dialects.iter().any(|known| known == dialect))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_profile_of_its_name() {
        for (name, text) in FILES {
            let source = Source::new(format!("{name}.yaml"), *text);
            let profile = Profile::parse(&source).map_err(|problems| problems.in_source(&source));
            assert_eq!(profile.map(|profile| profile.name).map_err(|it| it.to_string()), Ok((*name).to_owned()));
        }
        let says_twice = |it: &&Profile| it.tool_name.is_some() && !it.dialects.is_empty();
        assert_eq!(builtins().iter().find(says_twice).map(|it| &it.name), None, "the dialect says how tools are named");
        let count = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles")).expect("the folder").count();
        assert_eq!(count, FILES.len(), "every file is in the table");
    }
}
