//! The machine that a config is checked on: its system, its variables, its programs, its folders.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    env, fs, io,
    path::{Path, PathBuf},
};

use rehearse_document::text::marked_text_of;
use rehearse_system::{IS_MACOS, IS_WINDOWS, program::can_be_run};

/// The systems, as far as their paths, their variables and their folders differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Linux,
    MacOs,
    Windows,
}

/// Variables by their names. On Windows the case of a name does not matter.
#[derive(Clone, Debug)]
pub struct Variables {
    system: System,
    values: BTreeMap<String, String>,
}

/// What the checks may ask about a machine. Nothing is started.
#[derive(Clone, Debug)]
pub struct Machine {
    pub system: System,
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

/// The endings of programs on a Windows without `PATHEXT`.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// Whether a path of Windows begins with a drive or a server: `C:\x`, `C:/x`, `\\server\share`.
pub(crate) fn is_of_windows(path: &str) -> bool {
    let has_drive = matches!(path.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    has_drive || path.starts_with("\\\\")
}

/// Whether a path begins at a root, of Windows or of another system.
pub(crate) fn has_root(path: &str) -> bool {
    path.starts_with(['/', '\\']) || is_of_windows(path)
}

impl System {
    /// This one.
    pub const HERE: System = match () {
        () if IS_MACOS => System::MacOs,
        () if IS_WINDOWS => System::Windows,
        () => System::Linux,
    };

    pub fn is_windows(self) -> bool {
        self == System::Windows
    }

    /// Whether a path begins at a root.
    pub fn is_absolute(self, path: &str) -> bool {
        if self.is_windows() { is_of_windows(path) } else { path.starts_with('/') }
    }

    fn separator(self) -> &'static str {
        if self.is_windows() { "\\" } else { "/" }
    }

    /// A path below a folder, unless the path has a root. On Windows it may be written with `/`.
    pub fn join(self, folder: &Path, path: impl AsRef<Path>) -> PathBuf {
        let path = match self.is_windows() {
            true => path.as_ref().to_string_lossy().replace('/', self.separator()).into(),
            false => path.as_ref().as_os_str().to_owned(),
        };
        let has_root = if self.is_windows() { has_root } else { |path: &str| path.starts_with('/') };
        if has_root(&path.to_string_lossy()) {
            return path.into();
        }
        let mut joined = folder.as_os_str().to_owned();
        let separators: &[char] = if self.is_windows() { &['/', '\\'] } else { &['/'] };
        if !joined.is_empty() && !joined.to_string_lossy().ends_with(separators) {
            joined.push(self.separator());
        }
        joined.push(path);
        joined.into()
    }

    /// The rest of a path below a folder.
    pub(crate) fn below<'p>(self, folder: &Path, path: &'p Path) -> Option<Cow<'p, str>> {
        if !self.is_windows() {
            return path.strip_prefix(folder).ok().map(Path::to_string_lossy);
        }
        let (folder, path) = (folder.to_str()?.trim_end_matches(['/', '\\']), path.to_str()?);
        let (before, rest) = path.split_at_checked(folder.len())?;
        let is_same = |(a, b): (char, char)| a.eq_ignore_ascii_case(&b) || [a, b].iter().all(|c| "/\\".contains(*c));
        let is_below = before.chars().zip(folder.chars()).all(is_same) && rest.starts_with(['/', '\\']);
        is_below.then(|| rest[1..].into())
    }

    fn value<'v>(self, values: &'v BTreeMap<String, String>, name: &str) -> Option<&'v str> {
        let alike = || values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        values.get(name).or_else(|| self.is_windows().then(alike).flatten()).map(String::as_str)
    }

    fn home(self, values: &BTreeMap<String, String>) -> Option<&str> {
        self.value(values, if self.is_windows() { "USERPROFILE" } else { "HOME" }).filter(|home| !home.is_empty())
    }
}

impl Default for Variables {
    fn default() -> Self {
        Variables::new(System::HERE, BTreeMap::new())
    }
}

impl Variables {
    pub fn new(system: System, values: BTreeMap<String, String>) -> Variables {
        Variables { system, values }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.system.value(&self.values, name)
    }

    /// The home folder.
    pub fn home(&self) -> Option<&str> {
        self.system.home(&self.values)
    }

    /// All of them, to change their values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&String, &mut String)> {
        self.values.iter_mut()
    }
}

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Machine {
            system: System::HERE,
            variables: env::vars_os().filter_map(readable).collect(),
            directory: env::current_dir().unwrap_or_default(),
            look,
            read: marked_text_of,
        }
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.system.value(&self.variables, name)
    }

    /// The home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.system.home(&self.variables).map(|home| self.system.join(&self.directory, home))
    }

    /// The variables of this machine, and those that programs define for a project.
    pub fn variables_in(&self, project: &Path) -> Variables {
        let mut variables = self.variables.clone();
        let home = self.system.home(&variables).unwrap_or_default().to_owned();
        let folder = project.display().to_string();
        let base = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let known = [
            ("workspaceFolder", folder.clone()),
            ("workspaceFolderBasename", base),
            ("cwd", folder),
            ("userHome", home),
            ("pathSeparator", self.system.separator().to_owned()),
            ("/", self.system.separator().to_owned()),
        ];
        variables.extend(known.map(|(name, value)| (name.to_owned(), value)));
        Variables::new(self.system, variables)
    }

    /// What there is under a path, which may be relative.
    pub fn path_kind(&self, path: &Path) -> PathKind {
        (self.look)(&self.system.join(&self.directory, path))
    }

    /// The program that a command starts, without a slash from the folders of `PATH`. On Windows the ending may be missing
    /// that `PATHEXT` has: `npx` is `npx.cmd`.
    pub fn program(&self, command: &str) -> Option<PathBuf> {
        let endings = self.endings(command);
        let in_folder = |folder: &Path| {
            let mut paths = endings.iter().map(|ending| self.system.join(folder, format!("{command}{ending}")));
            paths.find(|path| (self.look)(path) == PathKind::Program)
        };
        match command.contains('/') || self.system.is_windows() && command.contains('\\') {
            true => in_folder(&self.directory),
            false => self.folders().iter().find_map(|folder| in_folder(&self.system.join(&self.directory, folder))),
        }
    }

    /// What the name of a program may end with, besides what is written.
    fn endings(&self, command: &str) -> Vec<String> {
        if !self.system.is_windows() {
            return vec![String::new()];
        }
        let known = self.variable("PATHEXT").filter(|known| !known.is_empty()).unwrap_or(ENDINGS);
        let known = known.split(';').map(|ending| ending.trim().to_ascii_lowercase()).filter(|it| !it.is_empty());
        let known: Vec<_> = known.collect();
        let is_whole = known.iter().any(|ending| command.to_ascii_lowercase().ends_with(&**ending));
        is_whole.then(String::new).into_iter().chain(known).collect()
    }

    /// The folders of `PATH`.
    fn folders(&self) -> Vec<String> {
        let path = self.variable("PATH").unwrap_or_default();
        match self.system {
            System::Windows => path.split(';').map(|it| it.trim_matches('"').to_owned()).collect(),
            System::Linux | System::MacOs => path.split(':').map(str::to_owned).collect(),
        }
    }

    /// Whether there is a program that a command starts.
    pub fn has_program(&self, command: &str) -> bool {
        self.program(command).is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(system: System, variables: &[(&str, &str)]) -> Machine {
        Machine {
            system,
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            directory: if system.is_windows() { "C:\\project" } else { "/project" }.into(),
            look: |path| match path.to_str().map(str::to_ascii_lowercase).as_deref() {
                Some(r"c:\node js\npx.cmd" | r"c:\node js\npx" | r"d:\bin\uvx.exe" | r"c:\project\tools\run.bat") => {
                    PathKind::Program
                }
                Some("/bin/npx" | "/project/bin/x" | "/node js/a.cmd") => PathKind::Program,
                _ => PathKind::Nothing,
            },
            read: |_| Err(io::ErrorKind::NotFound.into()),
        }
    }

    #[test]
    fn a_program_of_windows_is_found_by_its_endings_in_the_folders_of_the_path() {
        let path = [("Path", "\"C:\\Node JS\";;d:/bin\\")];
        let found = |variables: &[(&str, &str)], command: &str| {
            let found = machine(System::Windows, variables).program(command);
            found.map(|path| path.display().to_string())
        };
        for (command, expected) in [
            ("npx", Some(r"C:\Node JS\npx.cmd")),
            ("NPX.CMD", Some(r"C:\Node JS\NPX.CMD")),
            ("uvx", Some(r"d:\bin\uvx.exe")),
            (r"C:\Node JS\npx", Some(r"C:\Node JS\npx.cmd")),
            ("C:/Node JS/npx.cmd", Some(r"C:\Node JS\npx.cmd")),
            (r"tools\run", Some(r"C:\project\tools\run.bat")),
            ("tools/run.bat", Some(r"C:\project\tools\run.bat")),
            ("run", None),
        ] {
            assert_eq!(found(&path, command).as_deref(), expected, "{command}");
        }
        assert_eq!(found(&[path[0], ("PATHEXT", ".EXE; .PS1")], "npx"), None);
        let linux = machine(System::Linux, &[("PATH", "/bin::bin:/node js")]);
        for (command, expected) in [("npx", "/bin/npx"), ("x", "/project/bin/x"), ("bin/x", "/project/bin/x")] {
            assert_eq!(linux.program(command).as_deref(), Some(Path::new(expected)), "{command}");
        }
        assert_eq!(linux.program("a"), None, "there are no endings");
    }

    #[test]
    fn the_case_of_a_variable_matters_except_on_windows() {
        for (system, expected) in [(System::Windows, Some("v")), (System::Linux, None), (System::MacOs, None)] {
            let machine = machine(system, &[("Name", "v")]);
            assert_eq!((machine.variable("NAME"), machine.variable("Name")), (expected, Some("v")), "{system:?}");
            assert_eq!(machine.variables_in(Path::new("/p")).get("name"), expected, "{system:?}");
        }
        let windows = machine(System::Windows, &[("UserProfile", r"C:\Users\ada"), ("HOME", "/c/Users/ada")]);
        let variables = windows.variables_in(Path::new(r"C:\p"));
        assert_eq!(["userHome", "/"].map(|name| variables.get(name)), [Some(r"C:\Users\ada"), Some("\\")]);
        assert_eq!(windows.home().as_deref(), Some(Path::new(r"C:\Users\ada")));
    }

    #[test]
    fn drives_and_servers_are_roots_and_no_schemes() {
        for path in [r"C:\x", "c:/x", r"\\server\share\x"] {
            assert!(is_of_windows(path) && has_root(path), "{path}");
            let joined = System::Windows.join(Path::new(r"D:\p"), path);
            assert_eq!(joined.to_str(), Some(&*path.replace('/', "\\")));
        }
        for path in ["C:x", "cd:/x", "https://c/x", "x", "/x", "", "é:/x"] {
            assert!(!is_of_windows(path), "{path}");
        }
        let joined = [r"D:\p", r"D:\p\", "D:/p/"].map(|folder| System::Windows.join(Path::new(folder), "a/b"));
        assert_eq!(joined.map(|path| path.display().to_string()), [r"D:\p\a\b", r"D:\p\a\b", r"D:/p/a\b"]);
        let below = |folder: &str, path: &'static str| System::Windows.below(Path::new(folder), Path::new(path));
        assert_eq!(below(r"C:\Users\Ada\", r"c:/users/ada\x\y").as_deref(), Some(r"x\y"));
        assert_eq!((below(r"C:\Users", r"C:\Users2\x"), below(r"C:\Users", r"C:\Users")), (None, None));
    }
}
