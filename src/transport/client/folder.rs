//! A temporary folder.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rand::RngExt;

use super::ReaperProcess;

/// A temporary folder for the owner only. It goes when this is dropped, or with the [`ReaperProcess`] if this process is killed.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
}

impl TempFolder {
    /// Makes one in this folder.
    ///
    /// # Errors
    /// It cannot be made, or the guard cannot be started.
    pub fn create(within: &Path) -> io::Result<TempFolder> {
        // Whoever is told of it may be elsewhere.
        let within = std::path::absolute(within)?;
        let path = within.join(format!("rehearse-{:016x}", rand::rng().random::<u64>()));
        ReaperProcess::register(&path)?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        if made.is_err() {
            ReaperProcess::unregister(&path);
        }
        made.map(|()| TempFolder { path })
    }

    /// Absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // Nothing could be done about it.
        let _ = fs::remove_dir_all(&self.path);
        ReaperProcess::unregister(&self.path);
    }
}
