use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::Path,
};

use rustix::fs::OFlags;

use super::StandardStream;

/// Opens a file to read it. A pipe does not wait for a writer.
///
/// # Errors
/// It cannot be opened.
pub fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Whether it is a device, such as a terminal.
pub fn is_device(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device()
}

/// The standard stream, if the path is the same file. Opening a pipe again would wait for a reader. Devices are excluded,
/// because many processes share them.
pub fn standard_stream(stream: StandardStream, path: &Path) -> Option<File> {
    let found = std::fs::metadata(path).ok().filter(|found| !is_device(found))?;
    let file = match stream {
        StandardStream::Output => io::stdout().as_fd().try_clone_to_owned(),
        StandardStream::Error => io::stderr().as_fd().try_clone_to_owned(),
    };
    let file = File::from(file.ok()?);
    let of_stream = file.metadata().ok()?;
    ((of_stream.dev(), of_stream.ino()) == (found.dev(), found.ino())).then_some(file)
}
