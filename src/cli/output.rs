//! Standard output, and files with results.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::OnceLock,
};

use anstream::{ColorChoice, adapter::strip_bytes};

use super::{Failure, style::write_at_once};
use rehearse_report::{Format, text::folded};
use rehearse_system::private;

/// Why a write has failed.
static WRITE_ERROR: OnceLock<String> = OnceLock::new();

/// Writes a result in one write.
///
/// # Errors
/// It cannot be written. A closed pipe is not an error.
pub(super) fn write(result: &[u8]) -> Result<(), Failure> {
    to(io::stdout().lock(), result, ColorChoice::AlwaysAnsi)
}

/// Writes a styled result; ANSI sequences are kept only on a terminal.
///
/// # Errors
/// As [`write()`].
pub(super) fn write_styled(result: &[u8]) -> Result<(), Failure> {
    to(io::stdout().lock(), result, anstream::stdout().current_choice())
}

/// Writes a report to a file or to standard output. Only text has styles, and no file has them.
///
/// # Errors
/// It cannot be written.
pub(super) fn write_report(report: &[u8], format: Format, path: Option<&Path>) -> Result<(), Failure> {
    match (path, format) {
        (Some(path), Format::Human) => write_file(path, &strip_bytes(report).into_vec()),
        (Some(path), _) => write_file(path, report),
        (None, Format::Human) => write_styled(report),
        (None, _) => write(report),
    }
}

/// Writes a list with columns, whose lines are no wider than the terminal.
///
/// # Errors
/// As [`write()`].
pub(super) fn write_columns(list: &str) -> Result<(), Failure> {
    let width = terminal_size::terminal_size_of(io::stdout()).map_or(usize::MAX, |(width, _)| width.0.into());
    write_styled(folded(list, width).as_bytes())
}

/// Writes what an option such as `--list` prints, as text or as JSON.
///
/// # Errors
/// There is no such format of it, or it cannot be written.
pub(super) fn write_list(option: &str, format: Format, text: &str, json: &serde_json::Value) -> Result<(), Failure> {
    match format {
        Format::Human => write_columns(text),
        Format::Json => write(format!("{json:#}\n").as_bytes()),
        _ => Err(Failure::Usage(format!("{option} has the formats human and json"))),
    }
}

/// Checks that all writes succeeded.
///
/// # Errors
/// A write has failed.
pub(super) fn check_writes() -> Result<(), Failure> {
    WRITE_ERROR.get().map_or(Ok(()), |error| Err(Failure::cannot(error)))
}

/// Writes a file, a device or a pipe.
///
/// # Errors
/// It cannot be written; the message has the path.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = File::create(path).and_then(|file| fill(file, path, bytes));
    written.map_err(|error| Failure::cannot(format!("cannot write {}: {error}", path.display())))
}

/// Writes a file that only its owner can read.
///
/// # Errors
/// As [`write_file`].
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut options = File::options();
    let opened = private::open(options.write(true).create(true).truncate(true), path);
    let written = opened.and_then(|file| fill(file, path, bytes));
    written.map_err(|error| Failure::cannot(format!("cannot write {}: {error}", path.display())))
}

/// Writes to an opened file, and removes it if not everything can be written.
///
/// # Errors
/// It cannot be written.
pub(super) fn fill(mut file: File, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = file.write_all(bytes);
    if written.is_err()
        && let Ok(path) = path.canonicalize()
        && path.is_file()
    {
        // The first error is reported.
        let _ = fs::remove_file(path);
    }
    written
}

/// Remembers for [`check_writes()`] that standard output cannot be written. A closed pipe is not an error.
pub(super) fn remember(error: &io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        WRITE_ERROR.get_or_init(|| format!("cannot write the result: {error}"));
    }
}

fn to(out: impl Write, result: &[u8], choice: ColorChoice) -> Result<(), Failure> {
    if let Err(error) = write_at_once(out, result, choice) {
        remember(&error);
    }
    check_writes()
}
