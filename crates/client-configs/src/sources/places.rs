//! The folders of a machine, and the files that programs have in them.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use super::Precedence;
use crate::{
    Machine, System,
    dialect::{Dialect, FileLocation, all},
};

/// Where a machine has what.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    system: System,
    project: PathBuf,
    home: Option<PathBuf>,
    config: Option<PathBuf>,
    xdg: Option<PathBuf>,
    /// `%APPDATA%` and `%LOCALAPPDATA%`, on Windows alone.
    app_data: Option<PathBuf>,
    local_app_data: Option<PathBuf>,
}

/// A file that some program may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// As people would type it.
    pub(super) name: String,
    pub(super) precedence: Precedence,
}

impl Folders {
    pub(super) fn of(machine: &Machine) -> Folders {
        let (system, home) = (machine.system, machine.home());
        let below_home = |path| Some(system.join(home.as_ref()?, path));
        let variable = |name| machine.variable(name).filter(|path| system.is_absolute(path)).map(PathBuf::from);
        // A relative path there is invalid and ignored (XDG Base Directory Specification 0.8).
        let xdg = variable("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
        let of_windows = |name, usual| variable(name).or_else(|| below_home(usual)).filter(|_| system.is_windows());
        let app_data = of_windows("APPDATA", "AppData/Roaming");
        let config = match system {
            System::Linux => xdg.clone(),
            System::MacOs => below_home("Library/Application Support"),
            System::Windows => app_data.clone(),
        };
        let local_app_data = of_windows("LOCALAPPDATA", "AppData/Local");
        Folders { system, project: machine.directory.clone(), config, xdg, app_data, local_app_data, home }
    }

    /// Resolves a path from user input: from the working directory, or with `~/` from the home folder.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        let below_home = match self.system.is_windows() {
            true => path.to_str().and_then(|path| path.strip_prefix("~/").or(path.strip_prefix("~\\"))).map(Path::new),
            false => path.strip_prefix("~").ok(),
        };
        match (below_home, &self.home) {
            (Some(rest), Some(home)) => self.system.join(home, rest),
            _ => self.system.join(&self.project, path),
        }
    }

    /// The files of these dialects: those of the project, then those of the user, each file once.
    pub(super) fn candidates(&self, forced: Option<&'static Dialect>) -> Vec<Candidate> {
        let (mut candidates, mut seen) = (Vec::new(), HashSet::new());
        for precedence in [Precedence::Project, Precedence::User] {
            let dialects = all().filter(|dialect| forced.is_none_or(|forced| forced.name == dialect.name));
            for place in dialects.flat_map(|dialect| dialect.files) {
                if let Some(path) = self.path(*place, precedence).filter(|path| seen.insert(path.clone())) {
                    candidates.push(Candidate { name: self.name(&path), path, precedence });
                }
            }
        }
        candidates
    }

    fn path(&self, place: FileLocation, precedence: Precedence) -> Option<PathBuf> {
        let (folder, path) = match (place, precedence) {
            (FileLocation::Project(path), Precedence::Project) => (Some(&self.project), path),
            (FileLocation::Home(path), Precedence::User) => (self.home.as_ref(), path),
            (FileLocation::Config(path), Precedence::User) => (self.config.as_ref(), path),
            (FileLocation::Xdg(path), Precedence::User) => (self.xdg.as_ref(), path),
            (FileLocation::XdgOrAppData(path), Precedence::User) => {
                (self.app_data.as_ref().or(self.xdg.as_ref()), path)
            }
            (FileLocation::LocalAppData(path), Precedence::User) => (self.local_app_data.as_ref(), path),
            _ => return None,
        };
        Some(self.system.join(folder?, path))
    }

    /// On Windows `~` is no home folder for the shell.
    fn name(&self, path: &Path) -> String {
        let below = |folder: &Path| self.system.below(folder, path);
        let below_home = || self.home.as_deref().filter(|_| !self.system.is_windows()).and_then(below);
        match (below(&self.project), below_home()) {
            (Some(rest), _) => rest.into_owned(),
            (None, Some(rest)) => format!("~/{rest}"),
            (None, None) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathKind, lint};
    use rehearse_document::Source;

    fn folders(system: System, variables: &[(&str, &str)]) -> Folders {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (look, read) = (|_: &Path| PathKind::Nothing, |_: &Path| Err(std::io::ErrorKind::NotFound.into()));
        let directory = if system.is_windows() { r"D:\shop" } else { "/projects/shop" }.into();
        Folders::of(&Machine { system, variables, directory, look, read })
    }

    fn names(folders: &Folders, dialect: &str) -> Vec<String> {
        let dialect = crate::dialect::by_name(dialect);
        folders.candidates(Some(dialect.expect("known"))).into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn a_program_has_files_of_the_project_before_those_of_the_user_in_the_folders_of_the_system() {
        let linux = folders(System::Linux, &[("HOME", "/home/ada")]);
        assert_eq!(names(&linux, "vscode"), [".vscode/mcp.json", "~/.config/Code/User/mcp.json"]);
        assert_eq!(names(&linux, "cpe"), ["cpe.yaml", "cpe.yml", "~/.config/cpe/cpe.yaml", "~/.config/cpe/cpe.yml"]);
        let moved = folders(System::Linux, &[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada")]);
        assert_eq!(names(&moved, "claude-desktop"), ["/etc/ada/Claude/claude_desktop_config.json"]);
        assert_eq!(names(&moved, "zed"), [".zed/settings.json", "/etc/ada/zed/settings.json"]);
        let relative = folders(System::Linux, &[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "etc")]);
        assert_eq!(names(&relative, "claude-desktop"), ["~/.config/Claude/claude_desktop_config.json"]);
        let mac = folders(System::MacOs, &[("HOME", "/Users/ada")]);
        assert_eq!(names(&mac, "claude-desktop"), ["~/Library/Application Support/Claude/claude_desktop_config.json"]);
        assert_eq!(names(&mac, "zed")[1], "~/.config/zed/settings.json");
        assert_eq!(names(&folders(System::Linux, &[]), "cursor"), [".cursor/mcp.json"]);
    }

    #[test]
    fn on_windows_the_folders_are_those_of_its_variables() {
        let variables =
            [("UserProfile", r"C:\Users\ada"), ("APPDATA", r"C:\Users\ada\AppData\Roaming"), ("HOME", "/c")];
        let windows = folders(System::Windows, &variables);
        for (dialect, of_user) in [
            ("claude-code", r"C:\Users\ada\.claude.json"),
            ("cursor", r"C:\Users\ada\.cursor\mcp.json"),
            ("windsurf", r"C:\Users\ada\.codeium\windsurf\mcp_config.json"),
            ("codex", r"C:\Users\ada\.codex\config.toml"),
            ("gemini", r"C:\Users\ada\.gemini\settings.json"),
            ("continue", r"C:\Users\ada\.continue\config.yaml"),
            ("kiro", r"C:\Users\ada\.kiro\settings\mcp.json"),
            ("opencode", r"C:\Users\ada\.config\opencode\opencode.json"),
            ("zed", r"C:\Users\ada\AppData\Roaming\zed\settings.json"),
            ("vscode", r"C:\Users\ada\AppData\Roaming\Code\User\mcp.json"),
            ("cpe", r"C:\Users\ada\AppData\Roaming\cpe\cpe.yaml"),
        ] {
            let names = names(&windows, dialect);
            assert_eq!(names.iter().find(|name| name.starts_with("C:")).map(|name| &**name), Some(of_user));
        }
        assert_eq!(names(&windows, "zed")[0], r".zed\settings.json");
        let desktop = names(&windows, "claude-desktop");
        assert!(desktop[0].starts_with(r"C:\Users\ada\AppData\Local\Packages\Claude_"), "{desktop:?}");
        assert_eq!(desktop[1..], [r"C:\Users\ada\AppData\Roaming\Claude\claude_desktop_config.json"]);
        let moved = folders(System::Windows, &[("APPDATA", r"\\files\ada"), ("XDG_CONFIG_HOME", "D:/xdg")]);
        assert_eq!(names(&moved, "zed")[1], r"\\files\ada\zed\settings.json");
        assert_eq!(names(&moved, "opencode")[4], r"D:/xdg\opencode\opencode.json");
        let resolved = |path: &str| windows.resolve(Path::new(path)).display().to_string();
        assert_eq!(["~/a/b.json", r"~\b.json"].map(resolved), [r"C:\Users\ada\a\b.json", r"C:\Users\ada\b.json"]);
        assert_eq!(["a/b.json", "c:/b.json"].map(resolved), [r"D:\shop\a\b.json", r"c:\b.json"]);
    }

    #[test]
    fn in_the_home_folder_a_file_is_looked_for_once() {
        let home = folders(System::Linux, &[("HOME", "/projects/shop")]);
        assert_eq!(names(&home, "gemini"), [".gemini/settings.json"]);
    }

    #[test]
    fn every_default_file_is_known_by_its_path() {
        let linux = folders(System::Linux, &[("HOME", "/home/ada")]);
        let windows = folders(System::Windows, &[("USERPROFILE", r"c:\users\ADA")]);
        for dialect in all() {
            for Candidate { path, .. } in [&linux, &windows].into_iter().flat_map(|it| it.candidates(Some(dialect))) {
                let detected =
                    lint(&Source::new("t", if dialect.name == "codex" { "" } else { "{}" }), Some(&path), None, None)
                        .detected;
                assert_eq!(detected.map(|it| it.dialect.name), Some(dialect.name), "{}", path.display());
            }
        }
    }

    #[test]
    fn paths_begin_in_the_working_directory_or_at_home() {
        let folders = folders(System::Linux, &[("HOME", "/home/ada")]);
        let resolved = |path: &str| folders.resolve(Path::new(path)).display().to_string();
        assert_eq!(resolved("a/b.json"), "/projects/shop/a/b.json");
        assert_eq!(resolved("~/b.json"), "/home/ada/b.json");
        assert_eq!(resolved("/b.json"), "/b.json");
        assert_eq!(resolved("~b.json"), "/projects/shop/~b.json");
    }
}
