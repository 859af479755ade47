//! The folders of a machine, and the files that programs have in them.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use super::Precedence;
use crate::{
    Machine,
    dialect::{ALL, Dialect, FileLocation},
};

/// Systems, as far as their folders differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Linux,
    Mac,
    Windows,
}

/// Where a machine has what.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    project: PathBuf,
    home: Option<PathBuf>,
    config: Option<PathBuf>,
    xdg: Option<PathBuf>,
}

/// A file that some program may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    /// As people would type it.
    pub(super) name: String,
    pub(super) precedence: Precedence,
}

impl System {
    const fn here() -> System {
        match () {
            () if cfg!(target_os = "macos") => System::Mac,
            () if cfg!(windows) => System::Windows,
            () => System::Linux,
        }
    }
}

impl Folders {
    pub(super) fn of(machine: &Machine) -> Folders {
        Folders::on(System::here(), machine)
    }

    fn on(system: System, machine: &Machine) -> Folders {
        let variable = |name| machine.variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable(if system == System::Windows { "USERPROFILE" } else { "HOME" });
        let home = home.map(|home| machine.directory.join(home));
        // A relative path there is invalid and ignored (XDG Base Directory Specification 0.8).
        let set = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let xdg = set.or_else(|| Some(home.as_ref()?.join(".config")));
        let config = match system {
            System::Linux => xdg.clone(),
            System::Mac => home.as_ref().map(|home| home.join("Library/Application Support")),
            System::Windows => variable("APPDATA"),
        };
        Folders { project: machine.directory.clone(), home, config, xdg }
    }

    /// Resolves a path from user input: from the working directory, or with `~/` from the home folder.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.project.join(path),
        }
    }

    /// The files of these dialects: those of the project, then those of the user, each file once.
    pub(super) fn candidates(&self, forced: Option<&'static Dialect>) -> Vec<Candidate> {
        let (mut candidates, mut seen) = (Vec::new(), HashSet::new());
        for precedence in [Precedence::Project, Precedence::User] {
            let dialects = ALL.iter().filter(|dialect| forced.is_none_or(|forced| forced.name == dialect.name));
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
            _ => return None,
        };
        Some(folder?.join(path))
    }

    fn name(&self, path: &Path) -> String {
        let below_home = || Some(Path::new("~").join(path.strip_prefix(self.home.as_ref()?).ok()?));
        match path.strip_prefix(&self.project) {
            Ok(path) => path.display().to_string(),
            Err(_) => below_home().unwrap_or_else(|| path.to_owned()).display().to_string(),
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
        Folders::on(system, &Machine { variables, directory: "/projects/shop".into(), look, read })
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
        let mac = folders(System::Mac, &[("HOME", "/Users/ada")]);
        assert_eq!(names(&mac, "claude-desktop"), ["~/Library/Application Support/Claude/claude_desktop_config.json"]);
        assert_eq!(names(&mac, "zed")[1], "~/.config/zed/settings.json");
        let windows = folders(System::Windows, &[("USERPROFILE", "/ada"), ("APPDATA", "/ada/Roaming")]);
        assert_eq!(names(&windows, "vscode")[1], "~/Roaming/Code/User/mcp.json");
        assert_eq!(names(&folders(System::Linux, &[]), "cursor"), [".cursor/mcp.json"]);
    }

    #[test]
    fn in_the_home_folder_a_file_is_looked_for_once() {
        let home = folders(System::Linux, &[("HOME", "/projects/shop")]);
        assert_eq!(names(&home, "gemini"), [".gemini/settings.json"]);
    }

    #[test]
    fn every_default_file_is_known_by_its_path() {
        let folders = folders(System::Linux, &[("HOME", "/home/ada")]);
        for dialect in ALL {
            for Candidate { path, .. } in folders.candidates(Some(dialect)) {
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
