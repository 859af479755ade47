//! `--from-trace`: a mock script of recorded traffic.

use std::path::Path;

use crate::cli::{Exit, Failure, output, style, trace_file};
use rehearse_document::Source;
use rehearse_mock::{recording::RecordedScript, script::Script};

/// Prints the script, and what of the trace is not in it.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub(super) fn print_script(path: &Path) -> Result<Exit, Failure> {
    let RecordedScript { text, lost } = RecordedScript::new(&trace_file::read(path)?);
    for what in &lost {
        style::warn(&format!("not in the script: {what}"));
    }
    if let Err(problems) = Script::parse(&Source::new("the script", text.clone())) {
        style::warn(&format!("the script has mistakes, because the server has: {problems}"));
    }
    output::write(text.as_bytes())?;
    Ok(Exit::Success)
}
