//! What to say about each liberty that a text takes.

use std::borrow::Cow;

use super::{closing, written};
use crate::config::{
    Source,
    finding::{Code, codes},
    json::{self, Liberty, LibertyKind},
};

/// A code, what is wrong, and what to do.
type Complaint = (&'static Code, String, Cow<'static, str>);

/// What to say about a liberty that a program does not grant.
pub(super) fn complaint(liberty: &Liberty, source: &Source, program: &str) -> Complaint {
    let text = written(source, liberty.span);
    let (code, what, hint) = match liberty.kind {
        LibertyKind::BareValue => bare_value(text),
        LibertyKind::NoValue if text.contains('=') => {
            (&codes::JSON_FORM, "a key without a value", "write `\": \"` in the place of the `=`")
        }
        LibertyKind::UnendedText => {
            let hint = end_of_text(liberty, source);
            return (&codes::JSON_FORM, "a text without the quote at its end".into(), hint.into());
        }
        LibertyKind::Blank => {
            let code = text.chars().next().map_or(0, u32::from);
            let message = format!("a blank that is none in JSON (U+{code:04X}): {program} does not read it");
            return (&codes::JSON_BLANK, message, "replace it by an ordinary blank".into());
        }
        LibertyKind::UnknownEscape => {
            let message = format!("JSON has no escape `{text}`: {program} does not read it");
            return (&codes::JSON_FORM, message, "write each backslash twice".into());
        }
        LibertyKind::Unclosed
        | LibertyKind::WrongBracket
        | LibertyKind::SurplusBracket
        | LibertyKind::LateBracket
        | LibertyKind::WrongPairOfList
        | LibertyKind::WrongPairOfObject => return of_brackets(liberty, source, program),
        kind => plain(kind),
    };
    // There may be one for every few bytes of a file.
    (code, [what, ": ", program, " does not read it"].concat(), hint.into())
}

/// What to say about a liberty that looks the same wherever it is taken.
fn plain(kind: LibertyKind) -> (&'static Code, &'static str, &'static str) {
    use LibertyKind as Kind;
    match kind {
        Kind::ByteOrderMark => {
            (&codes::BYTE_ORDER_MARK, "an invisible byte order mark (U+FEFF)", "save the file as UTF-8 without it")
        }
        Kind::Comment => (&codes::JSON_COMMENT, "a comment", "remove it, or put it under a key such as \"_comment\""),
        Kind::HashComment => (
            &codes::JSON_COMMENT,
            "a comment with `#`",
            "remove it, or put it under a key such as \"_comment\"; where the program takes comments, they begin with `//`",
        ),
        Kind::BareReference => (&codes::JSON_FORM, "a reference without quotes", "put it in double quotes"),
        Kind::Fragment => (&codes::JSON_FORM, "an object without its braces", "put { } around all of it"),
        Kind::TrailingComma => (&codes::JSON_COMMA, "a comma after the last value", "remove the comma"),
        Kind::SurplusComma => (&codes::JSON_COMMA, "a comma with nothing before it", "remove one comma"),
        Kind::MissingComma => (&codes::JSON_COMMA, "no comma before this", "add a comma"),
        Kind::WrongComma => (&codes::JSON_COMMA, "no comma, but what stands in its place", "write `,` instead"),
        Kind::SurplusColon => (&codes::JSON_FORM, "a colon too many", "remove it"),
        Kind::MissingColon => (&codes::JSON_FORM, "no colon before this", "add a colon"),
        Kind::WrongColon => (&codes::JSON_FORM, "no colon, but what stands in its place", "write `:` instead"),
        Kind::NoValue => {
            (&codes::JSON_FORM, "a key without a value", "write its value, after a colon, or remove the key")
        }
        Kind::Ellipsis => (
            &codes::JSON_FORM,
            "dots for what was left out",
            "remove them with their comma, or write what belongs there",
        ),
        Kind::DiffMark => (
            &codes::JSON_FORM,
            "the mark of a diff",
            "remove each + at the beginning of a line, and each line with a -",
        ),
        Kind::SingleQuotes => (&codes::JSON_FORM, "single quotes", "use double quotes"),
        Kind::MixedQuotes => {
            (&codes::JSON_FORM, "quotes of two kinds around a text", "use double quotes on both sides")
        }
        Kind::Backticks => (&codes::JSON_FORM, "backticks", "use double quotes"),
        Kind::CurlyQuotes => (&codes::JSON_FORM, "typographic quotes", "use straight double quotes"),
        Kind::UnbegunText => {
            (&codes::JSON_FORM, "a text without the quote at its beginning", "add a double quote before this")
        }
        Kind::SurplusQuote => (&codes::JSON_FORM, "a quote too many", "remove it"),
        Kind::InnerQuotes => (&codes::JSON_FORM, "quotes within a text", "write each of them as \\\""),
        Kind::BareKey => (&codes::JSON_FORM, "a key without quotes", "put it in double quotes"),
        Kind::NumberForm => (&codes::JSON_FORM, "a number that JSON does not have", "write it in decimal"),
        Kind::TextForm => (&codes::JSON_FORM, "an escape that JSON does not have", "double the backslash"),
        Kind::ControlCharacter => {
            (&codes::JSON_FORM, "a line break or control character within a text", "write it as \\n, \\t or \\u001b")
        }
        Kind::UnopenedList => (&codes::JSON_UNCLOSED, "a list without its beginning", "add `[` before this"),
        Kind::UnopenedObject => (&codes::JSON_UNCLOSED, "an object without its beginning", "add `{` before this"),
        Kind::TextAfter => (&codes::JSON_AFTER, "something after the end", "remove it, or a bracket before it"),
        // The others are told with their places.
        Kind::Nothing
        | Kind::BareValue
        | Kind::UnendedText
        | Kind::Blank
        | Kind::UnknownEscape
        | Kind::Unclosed
        | Kind::WrongBracket
        | Kind::SurplusBracket
        | Kind::LateBracket
        | Kind::WrongPairOfList
        | Kind::WrongPairOfObject => (&codes::SYNTAX, "there is nothing in it", "an object with nothing in it is {}"),
    }
}

/// Where to add the quote that a text lacks.
fn end_of_text(liberty: &Liberty, source: &Source) -> String {
    match liberty.other.map(|other| (written(source, other), source.position(other.start))) {
        Some((before, (line, column))) if !before.trim().is_empty() => {
            format!("add a double quote before the `{before}` at {line}:{column}")
        }
        _ => "add a double quote at the end of the line; a newline is written \\n".into(),
    }
}

/// What to say about brackets that do not fit.
fn of_brackets(liberty: &Liberty, source: &Source, program: &str) -> Complaint {
    let text = written(source, liberty.span);
    let other = liberty.other.map(|other| (written(source, other), source.position(other.start)));
    match (liberty.kind, other) {
        (LibertyKind::Unclosed, other) => {
            let hint = match other {
                Some((before, (line, column))) if !before.is_empty() => {
                    format!("add the missing `{}` before {line}:{column}", closing(text))
                }
                _ => format!("add the missing `{}`", closing(text)),
            };
            (&codes::JSON_UNCLOSED, format!("this `{text}` is never closed"), hint.into())
        }
        (LibertyKind::LateBracket, other) => {
            let (before, (line, column)) = other.unwrap_or(("", (1, 1)));
            let message = format!("this `{text}` comes too late");
            (&codes::JSON_UNCLOSED, message, format!("move it to {line}:{column}, before the `{before}`").into())
        }
        (LibertyKind::WrongBracket, other) => {
            let (open, (line, column)) = other.unwrap_or(("{", (1, 1)));
            let message = format!("this `{text}` does not close the `{open}` at {line}:{column}");
            (&codes::JSON_UNCLOSED, message, format!("write `{}`", closing(open)).into())
        }
        (kind @ (LibertyKind::WrongPairOfList | LibertyKind::WrongPairOfObject), other) => {
            let (what, open, close) = match kind {
                LibertyKind::WrongPairOfObject => ("an object", '{', "}"),
                _ => ("a list", '[', "]"),
            };
            let hint = match other {
                Some((end, (line, column))) if end != close => {
                    format!("write `{open}` here and `{close}` at {line}:{column}")
                }
                _ => format!("write `{open}` here"),
            };
            (&codes::JSON_UNCLOSED, format!("{what} begins with `{open}`, and not with `{text}`"), hint.into())
        }
        (_, Some((end, (line, column)))) => {
            let message = "an object that no key stands before";
            (
                &codes::JSON_AFTER,
                message.into(),
                format!("remove this `{text}` and the `{end}` at {line}:{column}").into(),
            )
        }
        (_, None) => {
            let what = if matches!(text, "{" | "[") { "opens" } else { "closes" };
            (
                &codes::JSON_AFTER,
                format!("a bracket that {what} nothing: {program} does not read it"),
                "remove it".into(),
            )
        }
    }
}

/// What to say about a value without quotes that JSON does not have.
fn bare_value(text: &str) -> (&'static Code, &'static str, &'static str) {
    let other = "a value that JSON does not have";
    match text {
        "True" | "TRUE" => (&codes::JSON_FORM, other, "write true"),
        "False" | "FALSE" => (&codes::JSON_FORM, other, "write false"),
        "Null" | "NULL" => (&codes::JSON_FORM, other, "write null"),
        "None" | "nil" | "undefined" => (&codes::JSON_FORM, other, "write null, or remove the key"),
        _ if json::is_nothing(text) => (&codes::JSON_FORM, other, "write a number in digits, or remove the key"),
        _ => (&codes::JSON_FORM, "a text without quotes", "put it in double quotes"),
    }
}
