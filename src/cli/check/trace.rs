//! `--trace`: checks what a trace file has recorded.

use std::path::Path;

use crate::cli::{Failure, style, trace_file};
use rehearse_check::{CheckOptions, check_trace};
use rehearse_report::check::CheckedServer;
use rehearse_system::program::quoted;

/// Judges every server of a file.
///
/// # Errors
/// The file cannot be read, or is no trace.
pub(super) fn check(path: &Path, options: &CheckOptions) -> Result<Vec<CheckedServer>, Failure> {
    let mut servers = Vec::new();
    for recorded in check_trace(&trace_file::read(path)?, options) {
        let (mut checked, left_out) = (recorded.checked, recorded.left_out);
        let (name, transport) = (&checked.target, checked.transport);
        if left_out > 0 {
            style::warn(&format!("{left_out} connections of '{name}' over {transport} agree on no version"));
        }
        checked.target = format!("{name} in {}", path.display());
        checked.again = format!("rehearse check --trace {}", quoted(&path.display().to_string()));
        servers.push(checked);
    }
    Ok(servers)
}
