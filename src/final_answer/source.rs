//! JSON to the letter: what programs write, not people.

use crate::config::{Node, Problem, Problems, Source, json, json::LibertyKind};

/// Reads a JSON text. A byte order mark is passed over.
///
/// # Errors
/// Where the text is no JSON.
pub(super) fn parse(source: &Source) -> Result<Node, Problems> {
    to_the_letter(json::parse(source)?)
}

/// As [`parse`], with values that are nested deeper: what nobody wants to know spoils nothing.
///
/// # Errors
/// As those of [`parse`].
pub(super) fn parse_any(source: &Source) -> Result<Node, Problems> {
    to_the_letter(json::parse_any(source)?)
}

fn to_the_letter(document: json::Document) -> Result<Node, Problems> {
    let mut liberties = document.liberties.iter().filter(|liberty| liberty.kind != LibertyKind::ByteOrderMark);
    let Some(liberty) = liberties.next() else { return Ok(document.root) };
    let message = match liberty.kind {
        LibertyKind::Nothing => "there is nothing here",
        LibertyKind::Unclosed => "this is never closed",
        LibertyKind::WrongBracket | LibertyKind::SurplusBracket => "this closes nothing that is open",
        LibertyKind::UnknownEscape => "JSON has no such escape",
        LibertyKind::TextAfter => "this stands behind the end of the JSON text",
        LibertyKind::Comment | LibertyKind::HashComment => "JSON has no comments",
        LibertyKind::TrailingComma | LibertyKind::SurplusComma => "a comma too many",
        LibertyKind::MissingComma => "a comma is missing before this",
        LibertyKind::BareValue => "this is no value",
        _ => "this is not valid JSON",
    };
    Err(Problem::new(liberty.span, message).into())
}
