//! The machine that a config is checked on: its variables, its programs, its folders.

use std::{
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

use rehearse_document::text::marked_text_of;

/// What the checks may ask about a machine. Nothing is started.
#[derive(Clone, Debug)]
pub struct Machine {
    pub variables: BTreeMap<String, String>,
    /// Where relative paths begin.
    pub directory: PathBuf,
    pub look: fn(&Path) -> PathKind,
    pub read: fn(&Path) -> io::Result<String>,
}

/// What there is under a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathKind {
    Nothing,
    Directory,
    /// A file that can be run.
    Program,
    File,
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Machine {
            variables: env::vars_os().filter_map(readable).collect(),
            directory: env::current_dir().unwrap_or_default(),
            look,
            read: marked_text_of,
        }
    }

    /// The variables of this machine, and those that programs define for a project.
    pub fn variables_in(&self, project: &Path) -> BTreeMap<String, String> {
        let mut variables = self.variables.clone();
        let home = variables.get("HOME").cloned().unwrap_or_default();
        let folder = project.display().to_string();
        let base = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let known = [
            ("workspaceFolder", folder.clone()),
            ("workspaceFolderBasename", base),
            ("cwd", folder),
            ("userHome", home),
            ("pathSeparator", std::path::MAIN_SEPARATOR.to_string()),
            ("/", std::path::MAIN_SEPARATOR.to_string()),
        ];
        variables.extend(known.map(|(name, value)| (name.to_owned(), value)));
        variables
    }

    /// What there is under a path, which may be relative.
    pub fn path_kind(&self, path: &Path) -> PathKind {
        (self.look)(&self.directory.join(path))
    }

    /// Whether a command without a slash is in one of the folders of `PATH`.
    pub fn has_program(&self, name: &str) -> bool {
        let path = self.variables.get("PATH").map(String::as_str).unwrap_or_default();
        env::split_paths(path).any(|folder| {
            let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat", ""] } else { &[""] };
            endings.iter().any(|ending| self.path_kind(&folder.join(format!("{name}{ending}"))) == PathKind::Program)
        })
    }
}

fn look(path: &Path) -> PathKind {
    match fs::metadata(path) {
        Err(_) => PathKind::Nothing,
        Ok(metadata) if metadata.is_dir() => PathKind::Directory,
        Ok(metadata) if can_be_run(&metadata) => PathKind::Program,
        Ok(_) => PathKind::File,
    }
}

#[cfg(unix)]
fn can_be_run(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn can_be_run(_: &fs::Metadata) -> bool {
    true
}
