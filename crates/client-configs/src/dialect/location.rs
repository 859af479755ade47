//! Where programs keep their files.

use serde::Deserialize;

use crate::machine::is_of_windows;

/// A file of a program: where the program looks for it, and how to know it by its path. Parts are separated by `/`; a `*`
/// matches any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileLocation {
    /// Below the folder of a project.
    Project(&'static str),
    /// Below the home folder.
    Home(&'static str),
    /// Below the folder that a system has for settings: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    Config(&'static str),
    /// Below `$XDG_CONFIG_HOME` or `~/.config`, on every system.
    Xdg(&'static str),
    /// As `Xdg`, but on Windows below `%APPDATA%`.
    XdgOrAppData(&'static str),
    /// Below `%LOCALAPPDATA%`, on Windows alone.
    LocalAppData(&'static str),
    /// Anywhere: known by its name only.
    Named(&'static str),
    /// Anywhere, and about other things: it may well be without servers.
    Section(&'static str),
}

impl FileLocation {
    /// How a path ends that is this place.
    pub const fn suffix(self) -> &'static str {
        match self {
            FileLocation::Project(path)
            | FileLocation::Home(path)
            | FileLocation::Config(path)
            | FileLocation::Xdg(path)
            | FileLocation::XdgOrAppData(path)
            | FileLocation::LocalAppData(path)
            | FileLocation::Named(path)
            | FileLocation::Section(path) => path,
        }
    }

    /// Whether a path leads to such a file. On Windows the case of its letters does not matter.
    pub(super) fn matches(self, path: &str) -> bool {
        if is_of_windows(path) {
            return matches(&self.suffix().to_ascii_lowercase(), &path.replace('\\', "/").to_ascii_lowercase());
        }
        matches(self.suffix(), path)
    }
}

fn matches(suffix: &str, path: &str) -> bool {
    let (folder, ending) = suffix.split_once('*').unwrap_or(("", suffix));
    let Some(before) = path.strip_suffix(ending) else { return false };
    // The `*` matches one name that is not hidden.
    let (before, is_named) = match suffix.contains('*') {
        true => {
            let at = before.rfind('/').map_or(0, |slash| slash + 1);
            (&before[..at], at < before.len() && !before[at..].starts_with('.'))
        }
        false => (before, true),
    };
    let begins = |before: &str| before.is_empty() || before.ends_with('/');
    is_named && before.strip_suffix(folder).is_some_and(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_name_and_no_folder() {
        let agents = FileLocation::Named(".amazonq/cli-agents/*.json");
        for path in [".amazonq/cli-agents/a.json", "/p/.amazonq/cli-agents/a.b.json"] {
            assert!(agents.matches(path), "{path}");
        }
        for path in ".amazonq/cli-agents/.json .amazonq/cli-agents/.a.json .amazonq/cli-agents/a/b.json \
             x.amazonq/cli-agents/a.json cli-agents/a.json .amazonq/cli-agents/a.yaml"
            .split(' ')
        {
            assert!(!agents.matches(path), "{path}");
        }
        let workspaces = FileLocation::Section("*.code-workspace");
        assert!(workspaces.matches("a.code-workspace") && workspaces.matches("/p/q/a.code-workspace"));
        let folders = FileLocation::Section(".devcontainer/*/devcontainer.json");
        assert!(folders.matches("/p/.devcontainer/py/devcontainer.json"));
        assert!(
            !folders.matches(".devcontainer/devcontainer.json")
                && !folders.matches(".devcontainer/a/b/devcontainer.json")
        );
        assert!(
            folders.matches(r"c:\p\.DevContainer\py\devcontainer.json")
                && !folders.matches("/p/.DevContainer/py/devcontainer.json")
        );
        let plain = FileLocation::Named("mcp.json");
        assert!(plain.matches("mcp.json") && plain.matches("x/mcp.json") && !plain.matches("x-mcp.json"));
    }
}
