//! Files and folders that only their owner can read and change.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

pub use system::{Access, create_folder, create_folders, open, restrict};

/// Creates a file, which must not exist.
///
/// # Errors
/// It exists, or cannot be created.
pub fn create_new(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().write(true).create_new(true), path)
}

/// Opens a file to add to its end. If it does not exist, it is created.
///
/// # Errors
/// It cannot be created or written.
pub fn append(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().create(true).append(true), path)
}
