//! The folders of a host, and the environment that keeps it in them.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use rehearse_system::{TempFolder, private, program};

/// Variables of this process that a host gets as they are.
const KEPT: [&str; 5] = ["PATH", "LANG", "LC_ALL", "TZ", "SHELL"];

/// An empty home, a work folder and one for temporary files. They are removed on drop.
pub(crate) struct HostFolders {
    root: TempFolder,
}

impl HostFolders {
    /// # Errors
    /// They cannot be created.
    pub(crate) fn create() -> io::Result<HostFolders> {
        let folders = HostFolders { root: TempFolder::create(&std::env::temp_dir())? };
        for folder in [folders.home(), folders.work(), folders.temporary()] {
            private::create_folder(&folder)?;
        }
        Ok(folders)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Writes a file of the host.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        path.parent().map_or(Ok(()), private::create_folders)?;
        fs::write(path, bytes)
    }

    /// The whole environment of the host: its own home, and a proxy for everything that is not on this machine.
    pub(crate) fn variables(&self, proxy: &str) -> BTreeMap<String, OsString> {
        let home = self.home();
        let mut all: BTreeMap<String, OsString> = BTreeMap::new();
        all.extend(program::required_variables().map(|(name, value)| (name.to_owned(), value)));
        all.extend(KEPT.into_iter().filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?))));
        let mut set = |names: &[&str], value: &Path| {
            all.extend(names.iter().map(|name| ((*name).to_owned(), value.as_os_str().to_owned())));
        };
        set(&["HOME", "USERPROFILE"], &home);
        set(&["XDG_CONFIG_HOME"], &home.join(".config"));
        set(&["XDG_CACHE_HOME"], &home.join(".cache"));
        set(&["XDG_DATA_HOME"], &home.join(".local/share"));
        set(&["XDG_STATE_HOME"], &home.join(".local/state"));
        set(&["APPDATA"], &home.join("AppData/Roaming"));
        set(&["LOCALAPPDATA"], &home.join("AppData/Local"));
        set(&["TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR"], &self.temporary());
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            all.insert(name.to_owned(), proxy.into());
            all.insert(name.to_uppercase(), proxy.into());
        }
        for name in ["no_proxy", "NO_PROXY"] {
            all.insert(name.to_owned(), "127.0.0.1,localhost,::1".into());
        }
        all.insert("TERM".to_owned(), "dumb".into());
        all.insert("NO_COLOR".to_owned(), "1".into());
        all
    }
}
