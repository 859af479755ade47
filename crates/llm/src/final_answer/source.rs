//! JSON to the letter: what programs write, not people.

use rehearse_document::{
    Node, Problem, Problems, Source,
    json::{self, SyntaxExtensionKind},
};

/// Reads a JSON text. A byte order mark is ignored.
///
/// # Errors
/// Where the text is not JSON.
pub(super) fn parse(source: &Source) -> Result<Node, Problems> {
    let document = json::parse(source)?;
    let mut extensions = document.extensions.iter().filter(|it| it.kind != SyntaxExtensionKind::ByteOrderMark);
    let Some(extension) = extensions.next() else { return Ok(document.root) };
    let message = match extension.kind {
        SyntaxExtensionKind::Empty => "there is nothing here",
        SyntaxExtensionKind::Comment => "JSON has no comments",
        SyntaxExtensionKind::TrailingComma => "a comma too many",
        _ => "this is not valid JSON",
    };
    Err(Problem::new(extension.span, message).into())
}
