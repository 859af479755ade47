//! The standard error of servers in messages.

/// Precedes the last lines of a server's standard error, which end the text of an error.
pub const STDERR_HEADING: &str = "last lines of its standard error:";

/// The last lines of standard error as the end of a message.
pub(crate) fn stderr_excerpt(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("\n{STDERR_HEADING}\n  {}", lines.join("\n  ")) }
}
