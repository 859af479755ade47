//! The history of commands, in a file that only the user can read. Commands with secrets are not saved.

use std::{
    io,
    path::{Path, PathBuf},
};

use reedline::{FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, SearchQuery};

use rehearse_client_configs::{Machine, secret::mask};
use rehearse_system::private;

/// The maximum number of commands.
const MOST: usize = 1000;

/// The path of the file (XDG Base Directory Specification), on Windows below `%LOCALAPPDATA%`; `None` without a home.
pub(super) fn path_of_history(machine: &Machine) -> Option<PathBuf> {
    let variable = |name| machine.variable(name).filter(|path| machine.system.is_absolute(path)).map(PathBuf::from);
    let usual = || match machine.system.is_windows() {
        true => variable("LOCALAPPDATA"),
        false => Some(variable("HOME")?.join(".local").join("state")),
    };
    Some(variable("XDG_STATE_HOME").or_else(usual)?.join("rehearse").join("history"))
}

/// A history without commands that contain secrets.
pub(super) struct RedactingHistory {
    history: FileBackedHistory,
    has_secret: Box<dyn Fn(&str) -> bool + Send>,
}

impl RedactingHistory {
    /// Opens the history in a file, which is created if necessary. Lines for which `has_secret` is true are not saved.
    ///
    /// # Errors
    /// The file cannot be created or read.
    pub(super) fn open(
        path: &Path,
        has_secret: impl Fn(&str) -> bool + Send + 'static,
    ) -> io::Result<RedactingHistory> {
        if let Some(folder) = path.parent() {
            private::create_folders(folder)?;
        }
        private::append(path)?;
        private::restrict(path)?;
        let history = FileBackedHistory::with_file(MOST, path.to_owned()).map_err(io::Error::other)?;
        Ok(RedactingHistory { history, has_secret: Box::new(has_secret) })
    }
}

/// Whether a line contains something that looks like a secret.
pub(super) fn looks_secret(line: &str) -> bool {
    let has_secret = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        let name = name.trim_start_matches(['\'', '"']).trim_end_matches(':');
        let value = value.trim_matches(['\'', '"']);
        mask(name, value) != value
    };
    line.split_whitespace().any(has_secret) || mask("", line) != line
}

impl History for RedactingHistory {
    fn save(&mut self, item: HistoryItem) -> reedline::Result<HistoryItem> {
        if looks_secret(&item.command_line) || (self.has_secret)(&item.command_line) {
            return Ok(item);
        }
        self.history.save(item)
    }

    fn load(&self, id: HistoryItemId) -> reedline::Result<HistoryItem> {
        self.history.load(id)
    }

    fn count(&self, query: SearchQuery) -> reedline::Result<i64> {
        self.history.count(query)
    }

    fn search(&self, query: SearchQuery) -> reedline::Result<Vec<HistoryItem>> {
        self.history.search(query)
    }

    fn update(&mut self, id: HistoryItemId, updater: &dyn Fn(HistoryItem) -> HistoryItem) -> reedline::Result<()> {
        self.history.update(id, updater)
    }

    fn clear(&mut self) -> reedline::Result<()> {
        self.history.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> reedline::Result<()> {
        self.history.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.history.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.history.session()
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::{
        fs::{self, Permissions},
        os::unix::fs::PermissionsExt,
    };

    use super::*;
    use rehearse_client_configs::System;

    #[cfg(unix)]
    #[test]
    fn a_line_with_a_secret_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state/rehearse/history");
        let mut history = RedactingHistory::open(&path, |line| line.contains("geheim")).expect("opens");
        for line in [
            "status",
            "call login password=abcdef123 user=me",
            "call login {\"token\": \"abcdef123\"}",
            "call x text=ghp_0123456789abcdefABCD0123456789abcdef",
            "call x text=geheim",
            "call x text=hello 'b=c d'",
        ] {
            history.save(HistoryItem::from_command_line(line)).expect("saves");
        }
        history.sync().expect("writes");
        assert_eq!(fs::read_to_string(&path).expect("reads"), "status\ncall x text=hello 'b=c d'\n");
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_could_read_is_closed_to_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        fs::write(&path, "status\n").expect("writes");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("changes");
        let history = RedactingHistory::open(&path, |_| false).expect("opens");
        assert_eq!(fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(history.count_all().expect("counts"), 1);
    }

    #[test]
    fn the_file_is_where_programs_keep_their_state() {
        let on = |system, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            path_of_history(&Machine { system, variables, ..Machine::here() })
        };
        let of = |variables: &[(&str, &str)]| on(System::Linux, variables);
        assert_eq!(of(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), Some("/s/rehearse/history".into()));
        assert_eq!(of(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), Some("/h/.local/state/rehearse/history".into()));
        assert_eq!((of(&[]), of(&[("HOME", "h")]), of(&[("LOCALAPPDATA", "/l")])), (None, None, None));
        let windows = [("LocalAppData", "C:/l"), ("USERPROFILE", "C:/u"), ("HOME", "C:/h")];
        assert_eq!(on(System::Windows, &windows), Some("C:/l/rehearse/history".into()));
    }
}
