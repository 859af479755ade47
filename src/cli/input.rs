//! The input of a command: a file or standard input.

use std::{io, path::Path, sync::Arc};

use super::Failure;
use rehearse_document::{Source, text::text};

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub(super) fn read(path: &Path) -> Result<Arc<Source>, Failure> {
    let failed = |what: &str, error: io::Error| Failure::Usage(format!("cannot read {what}: {error}"));
    if path != Path::new("-") {
        return Source::read(path).map_err(|error| failed(&path.display().to_string(), error));
    }
    let text = text(io::stdin().lock()).map_err(|error| failed("standard input", error))?;
    Ok(Source::new("stdin", text))
}
