//! A temporary folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rand::RngExt;

use crate::{private, process::ReaperProcess};

/// A temporary folder for the owner only. It is removed on drop, or by the [`ReaperProcess`] if this process is killed.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
}

impl TempFolder {
    /// Creates one in this folder.
    ///
    /// # Errors
    /// It cannot be created, or the reaper cannot be started.
    pub fn create(within: &Path) -> io::Result<TempFolder> {
        // The reaper has another working directory.
        let within = std::path::absolute(within)?;
        let path = within.join(format!("rehearse-{:016x}", rand::rng().random::<u64>()));
        ReaperProcess::register(path.to_string_lossy())?;
        let made = private::create_folder(&path);
        if made.is_err() {
            ReaperProcess::unregister(path.to_string_lossy());
        }
        made.map(|()| TempFolder { path })
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // An error could not be handled here.
        let _ = fs::remove_dir_all(&self.path);
        ReaperProcess::unregister(self.path.to_string_lossy());
    }
}
