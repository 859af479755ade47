//! A temporary folder.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rand::RngExt;

use super::ReaperProcess;

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
        ReaperProcess::register(&path)?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        if made.is_err() {
            ReaperProcess::unregister(&path);
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
        ReaperProcess::unregister(&self.path);
    }
}
