//! Workflow commands, which GitHub shows beside the lines of a pull request (GitHub Actions, Workflow commands).

use std::fmt::Write;

use super::{Report, Severity};

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    for file in &report.files {
        for finding in report.shown(file) {
            let command = match finding.code.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Advice => "notice",
            };
            let ((line, column), (end_line, end_column)) = file.positions(finding);
            let path = property(file.path.strip_prefix("./").unwrap_or(&file.path));
            let _ = write!(out, "::{command} file={path},line={line},col={column}");
            // GitHub accepts an end column only on the same line.
            let _ = match end_line == line {
                true => write!(out, ",endColumn={end_column}"),
                false => write!(out, ",endLine={end_line}"),
            };
            let mut message = data(&finding.problem.message);
            if let Some(hint) = &finding.problem.hint {
                let _ = write!(message, " ({})", data(hint));
            }
            let _ = writeln!(out, ",title={}::{message}", finding.code.name);
        }
    }
    out
}

/// The message of a command.
pub(crate) fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
pub(crate) fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
