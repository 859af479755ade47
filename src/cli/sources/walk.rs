//! The known config files below a folder.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use rehearse_client_configs::dialect::by_path;
use rehearse_release::{Release, is_marked};

/// Folders with generated or downloaded files.
const SKIPPED: [&str; 8] = [".git", "node_modules", "target", "vendor", "dist", "build", "__pycache__", ".venv"];

/// The files of a folder that may have servers.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    /// Those that some program reads, and release files.
    pub(crate) known: Vec<PathBuf>,
    /// Others that are not large and name servers.
    pub(crate) others: Vec<PathBuf>,
}

/// The most bytes of a file that no program is known to read.
const LARGEST: u64 = 1 << 18;

/// The config files below a folder, sorted; symbolic links are not followed, and unreadable folders are ignored.
pub(crate) fn configs_below(folder: &Path) -> FoundFiles {
    let (mut found, mut folders) = (FoundFiles::default(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            // Omit a leading `.`.
            let path = if folder == Path::new(".") { PathBuf::from(&name) } else { folder.join(&name) };
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == OsStr::new(skipped)) {
                folders.push(path);
            } else if kind.is_file() && (by_path(&absolute(&path)).is_some() || is_release_file(&path)) {
                found.known.push(path);
            } else if kind.is_file() && names_servers(&path) {
                found.others.push(path);
            }
        }
    }
    found.known.sort();
    found.others.sort();
    found
}

/// Whether a file is a release file for certain.
fn is_release_file(path: &Path) -> bool {
    let is_small = || fs::metadata(path).is_ok_and(|data| data.len() <= LARGEST);
    Release::by_path(path).is_some() && is_small() && fs::read_to_string(path).is_ok_and(|text| is_marked(path, &text))
}

/// Whether a file has a key for servers that only programs with MCP have.
fn names_servers(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_small = || fs::metadata(path).is_ok_and(|data| data.len() <= LARGEST);
    let is_named = path.file_stem().and_then(OsStr::to_str).is_some_and(|stem| stem.to_lowercase().contains("mcp"));
    let own = ["mcpServers", "mcp_servers", "context_servers"];
    let has_key = |text: &str| own.iter().any(|key| text.contains(key)) || is_named && text.contains("\"servers\"");
    ["json", "jsonc", "yaml", "yml", "toml"].contains(&extension)
        && is_small()
        && fs::read_to_string(path).is_ok_and(|text| has_key(&text))
}

/// The absolute path, because the parent folders of the current folder can determine the dialect.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The project folder of a config: its folder, or the parent of `.vscode` and similar folders.
pub(crate) fn project(path: &Path) -> PathBuf {
    let path = absolute(path);
    let depth = by_path(&path).map_or(1, |(_, place)| place.suffix().split('/').count());
    path.ancestors().nth(depth).or(path.parent()).unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn known_files_are_found_at_any_depth_in_order_and_generated_folders_are_ignored() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = [
            "b/.cursor/mcp.json",
            "a/.mcp.json",
            ".mcp.json",
            "mcp.json",
            "node_modules/x/.mcp.json",
            "a/target/.mcp.json",
            "x.mcp.json",
            "settings.json",
            ".gemini/settings.json",
        ];
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
            fs::write(path, "{}").expect("writes");
        }
        std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("c")).expect("links");
        let found = configs_below(folder.path()).known;
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).expect("below")).collect();
        let expected = [".gemini/settings.json", ".mcp.json", "a/.mcp.json", "b/.cursor/mcp.json"];
        assert_eq!(found, expected.map(Path::new));
        assert_eq!(configs_below(&folder.path().join(".gemini")).known.len(), 1, "its name is part of the path");
    }

    #[test]
    fn agents_blocks_and_plugins_are_found_by_their_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let expected = [
            ".amazonq/cli-agents/reviewer.json",
            ".claude-plugin/plugin.json",
            ".continue/mcpServers/docs.json",
            ".continue/mcpServers/docs.yaml",
            ".junie/mcp/mcp.json",
            ".vscode/settings.json",
            "team.code-workspace",
        ];
        let others = ["cli-agents/a.json", ".continue/rules/a.yaml", "plugin.json", ".amazonq/rules/a.json"];
        for name in expected.iter().chain(&others) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
            fs::write(path, "{}").expect("writes");
        }
        let found = configs_below(folder.path()).known;
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).expect("below")).collect();
        assert_eq!(found, expected.map(Path::new));
    }

    #[test]
    fn release_files_are_found_if_they_say_what_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
        for (name, text) in [
            ("a/server.json", &*format!(r#"{{"$schema": "{schema}"}}"#)),
            ("b/server.json", r#"{"name": "io.github.ada/b", "packages": []}"#),
            ("c/manifest.json", r#"{"manifest_version": "0.3", "server": {}}"#),
            ("d/manifest.json", r#"{"manifest_version": 3, "name": "an extension"}"#),
            ("f/SKILL.md", "# Anything"),
            ("node_modules/SKILL.md", ""),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("creates");
            fs::write(path, text).expect("writes");
        }
        let found = configs_below(folder.path()).known;
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).expect("below")).collect();
        assert_eq!(found, ["a/server.json", "c/manifest.json", "f/SKILL.md"].map(Path::new));
    }

    #[test]
    fn the_project_is_the_parent_of_the_folder_of_the_program() {
        for (path, folder) in [
            ("/p/.vscode/mcp.json", "/p"),
            ("/p/.mcp.json", "/p"),
            ("/p/x/other.json", "/p/x"),
            ("/h/.aws/amazonq/mcp.json", "/h"),
            ("/p/.amazonq/cli-agents/a.json", "/p"),
            ("/p/a.code-workspace", "/p"),
        ] {
            assert_eq!(project(Path::new(path)), std::path::absolute(folder).expect("a path"), "{path}");
        }
    }
}
