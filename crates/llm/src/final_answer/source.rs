//! Strict JSON.

use rehearse_document::{
    Node, Problem, Problems, Source,
    json::{self, SyntaxExtensionKind},
};

/// Reads a JSON text. A byte order mark is ignored.
///
/// # Errors
/// The location of the first syntax error.
pub(super) fn parse(source: &Source) -> Result<Node, Problems> {
    let document = json::parse(source)?;
    let mut extensions = document.extensions.iter().filter(|it| it.kind != SyntaxExtensionKind::ByteOrderMark);
    let Some(extension) = extensions.next() else { return Ok(document.root) };
    let message = match extension.kind {
        SyntaxExtensionKind::Empty => "the text is empty",
        SyntaxExtensionKind::Comment => "JSON has no comments",
        SyntaxExtensionKind::TrailingComma => "JSON has no trailing commas",
        _ => "this is not valid JSON",
    };
    Err(Problem::new(extension.span, message).into())
}
