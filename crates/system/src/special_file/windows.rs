use std::{
    fs::{File, Metadata},
    io,
    path::Path,
};

use super::StandardStream;

/// Opens a file to read it.
///
/// # Errors
/// It cannot be opened.
pub fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Whether it is a device. Devices have names here, and no metadata.
pub fn is_device(_: &Metadata) -> bool {
    false
}

/// `None`: standard streams have no paths.
pub fn standard_stream(_: StandardStream, _: &Path) -> Option<File> {
    None
}
