//! Standard output.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use anstream::ColorChoice;

use super::{Failure, style::write_at_once};

/// Whether a write has failed.
static WRITE_FAILED: AtomicBool = AtomicBool::new(false);

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

/// Checks that all writes succeeded.
///
/// # Errors
/// A write has failed.
pub(super) fn check_writes() -> Result<(), Failure> {
    match WRITE_FAILED.load(Ordering::Relaxed) {
        true => Err(Failure::cannot("some output could not be written".to_owned())),
        false => Ok(()),
    }
}

fn to(out: impl Write, result: &[u8], choice: ColorChoice) -> Result<(), Failure> {
    match write_at_once(out, result, choice) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            WRITE_FAILED.store(true, Ordering::Relaxed);
            Err(Failure::cannot(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}
