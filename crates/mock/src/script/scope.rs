//! The scopes of tokens.

use rehearse_document::{Node, Problems};

/// Reads a scope.
///
/// # Errors
/// It is not a string, or has characters that a scope cannot have (RFC 6749, section 3.3).
pub(super) fn read(node: &Node) -> Result<String, Problems> {
    let scope = node.str()?;
    let is_valid = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    match !scope.is_empty() && scope.chars().all(is_valid) {
        true => Ok(scope.to_owned()),
        false => Err(node.problem("a scope must be a word without spaces, quotes and backslashes").into()),
    }
}
