//! JSON as people write it, into a [`Node`] tree with byte spans.
//!
//! Every program reads its own JSON: one wants RFC 8259 to the letter, the next strips comments, a third takes JSON5. So
//! this reader takes what any known program takes and lists the [`SyntaxExtension`]s that the text uses; who knows the
//! program decides. Anything else is a syntax error. Only the first one is reported, but strings without an end and
//! missing commas all at once; it quotes nothing from the text.

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions, Scanner, ScannerOptions, ast, common::Ranged,
    errors::ParseErrorKind as Kind, parse_to_ast, tokens::Token, tokens::TokenAndRange,
};

use super::{
    Duplicate, Entry, Node, Problem, Problems, Source, Span, Value,
    node::Entries,
    text::{boundary_after, boundary_before},
};

/// A JSON text that could be read, and what it needs a reader to accept.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub root: Node,
    /// In the order of the text.
    pub extensions: Vec<SyntaxExtension>,
    /// Keys that occur twice in one object; the last one counts, as in JavaScript.
    pub duplicates: Vec<Duplicate>,
}

/// Something that RFC 8259 does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxExtension {
    pub kind: SyntaxExtensionKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SyntaxExtensionKind {
    /// U+FEFF before the text.
    ByteOrderMark,
    /// `// …` or `/* … */`.
    Comment,
    /// `[1, 2, ]`.
    TrailingComma,
    /// `'text'`.
    SingleQuotes,
    /// `{ key: 1 }`.
    BareKey,
    /// A space that is not space, tab or newline: often from a web page.
    Space,
    /// A raw tab or another control character in a string.
    ControlCharacter,
    /// No value at all. It is read as null.
    Empty,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

const COLLECT: CollectOptions = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };

/// The liberties that some known program allows. By default, the library also allows a missing comma.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: true,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: true,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads a JSON text.
///
/// # Errors
/// The first syntax error, or every one of its kind; nesting deeper than 512 levels.
pub fn parse(source: &Source) -> Result<Document, Problems> {
    let text = source.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&source.text);
    let reader = Reader { text, offset: source.text.len() - text.len() };
    let mut unclosed = Vec::new();
    while let Some(span) = reader.unclosed_string(unclosed.last().map_or(0, |span: &Span| span.end - reader.offset)) {
        unclosed.push(span);
    }
    if !unclosed.is_empty() {
        let problem = |span| Problem::new(span, "this string does not end on its line");
        let hint = "add the missing double quote; a line break in a string is written \\n";
        return Err(Problems(unclosed.into_iter().map(|span| problem(span).hint(hint)).collect()));
    }
    let parsed = parse_to_ast(text, &COLLECT, &OPTIONS).map_err(|error| {
        let problems = reader.problems(error.kind(), error.range().start, error.range().end);
        if matches!(error.kind(), Kind::ExpectedComma) { reader.missing_commas(problems) } else { problems }
    })?;
    let tokens = parsed.tokens.unwrap_or_default();
    let mut extensions = reader.extensions(&tokens);
    let mut duplicates = Vec::new();
    let root = match &parsed.value {
        Some(value) => reader.node(value, &mut extensions, &mut duplicates),
        None => {
            let end = Span { start: source.text.len(), end: source.text.len() };
            extensions.push(SyntaxExtension { kind: SyntaxExtensionKind::Empty, span: end });
            Node { span: end, value: Value::Null }
        }
    };
    extensions.sort_by_key(|extension| extension.span.start);
    Ok(Document { root, extensions, duplicates })
}

struct Reader<'t> {
    text: &'t str,
    /// Where the text begins in its source.
    offset: usize,
}

impl Reader<'_> {
    fn span(&self, start: usize, end: usize) -> Span {
        Span { start: self.offset + start, end: self.offset + end }
    }

    /// The first string from here on with a raw line break in it, up to the break. The library reads on to the next quote,
    /// often lines below.
    fn unclosed_string(&self, from: usize) -> Option<Span> {
        let options = ScannerOptions { allow_extended_string_escapes: false, ..ScannerOptions::default() };
        let mut scanner = Scanner::new(&self.text[from..], &options);
        loop {
            // A scanner that fails does so at the beginning of the string.
            let is_end = !matches!(scanner.scan(), Ok(Some(_)));
            let start = from + scanner.token_start();
            let rest = &self.text[start..];
            if rest.starts_with(['"', '\'']) {
                let end = if is_end { self.text.len() } else { from + scanner.token_end() };
                let written = &self.text[start..end];
                let line = written.lines().next().unwrap_or(written);
                let is_closed = line.len() == written.len() && !is_end || has_end(line);
                if !is_closed {
                    return Some(self.span(start, start + line.len()));
                }
            }
            if is_end {
                return None;
            }
        }
    }

    /// All places where a comma is missing, given the first; if the text has another mistake, that and the first.
    fn missing_commas(&self, mut first: Problems) -> Problems {
        let options = ParseOptions { allow_missing_commas: true, ..OPTIONS };
        let parsed = match parse_to_ast(self.text, &COLLECT, &options) {
            Ok(parsed) => parsed,
            Err(error) => {
                first.0.extend(self.problems(error.kind(), error.range().start, error.range().end).0);
                return first;
            }
        };
        let mut problems = Vec::new();
        let mut is_value = false;
        for TokenAndRange { token, range } in parsed.tokens.unwrap_or_default() {
            let begins = match token {
                Token::CommentLine(_) | Token::CommentBlock(_) => continue,
                Token::Comma | Token::Colon | Token::CloseBrace | Token::CloseBracket => false,
                _ => true,
            };
            if begins && is_value {
                problems.extend(self.problems(&Kind::ExpectedComma, range.start, range.end).0);
            }
            is_value = !matches!(token, Token::Comma | Token::Colon | Token::OpenBrace | Token::OpenBracket);
        }
        Problems(problems)
    }

    fn extensions(&self, tokens: &[TokenAndRange<'_>]) -> Vec<SyntaxExtension> {
        let mut found = Vec::new();
        let mut add = |kind, span| found.push(SyntaxExtension { kind, span });
        if self.offset > 0 {
            add(SyntaxExtensionKind::ByteOrderMark, Span { start: 0, end: self.offset });
        }
        let (mut end, mut comma) = (0, None);
        for TokenAndRange { token, range } in tokens {
            let between = &self.text[end..range.start];
            if let Some((at, space)) = between.char_indices().find(|(_, c)| !matches!(c, ' ' | '\t' | '\r' | '\n')) {
                add(SyntaxExtensionKind::Space, self.span(end + at, end + at + space.len_utf8()));
            }
            end = range.end;
            let span = self.span(range.start, range.end);
            match token {
                Token::CommentLine(_) | Token::CommentBlock(_) => {
                    add(SyntaxExtensionKind::Comment, span);
                    continue;
                }
                Token::CloseBrace | Token::CloseBracket => {
                    if let Some(comma) = comma {
                        add(SyntaxExtensionKind::TrailingComma, comma);
                    }
                }
                Token::String(_) => {
                    let written = &self.text[range.start..range.end];
                    if written.starts_with('\'') {
                        add(SyntaxExtensionKind::SingleQuotes, span);
                    }
                    if let Some(at) = written.find(|c: char| u32::from(c) < 0x20) {
                        let control = self.span(range.start + at, range.start + at + 1);
                        add(SyntaxExtensionKind::ControlCharacter, control);
                    }
                }
                _ => {}
            }
            comma = (*token == Token::Comma).then_some(span);
        }
        found
    }

    fn node(
        &self,
        value: &ast::Value<'_>,
        extensions: &mut Vec<SyntaxExtension>,
        duplicates: &mut Vec<Duplicate>,
    ) -> Node {
        let range = value.range();
        let read = match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
            ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
            ast::Value::StringLit(literal) => Value::String(literal.value.clone().into_owned()),
            ast::Value::Array(array) => {
                Value::Sequence(array.elements.iter().map(|item| self.node(item, extensions, duplicates)).collect())
            }
            ast::Value::Object(object) => {
                let mut entries = Entries::default();
                for member in &object.properties {
                    let (key, range) = match &member.name {
                        ast::ObjectPropName::String(name) => (name.value.clone().into_owned(), name.range),
                        ast::ObjectPropName::Word(name) => {
                            let span = self.span(name.range.start, name.range.end);
                            extensions.push(SyntaxExtension { kind: SyntaxExtensionKind::BareKey, span });
                            (name.value.to_owned(), name.range)
                        }
                    };
                    let key_span = self.span(range.start, range.end);
                    let node = self.node(&member.value, extensions, duplicates);
                    duplicates.extend(entries.add(Entry { key, key_span, node }));
                }
                entries.into_value()
            }
        };
        Node { span: self.span(range.start, range.end), value: read }
    }

    /// The message about a syntax error.
    fn problems(&self, kind: &Kind, start: usize, end: usize) -> Problems {
        let (message, hint) = match kind {
            Kind::UnexpectedToken | Kind::UnexpectedTokenInObject => {
                character_message(self.text[boundary_before(self.text, start)..].chars().next())
            }
            _ => message_and_hint(kind),
        };
        let problem = |start: usize, end: usize, message: &'static str| {
            // A range may end within a character, or begin behind the last.
            let start = boundary_before(self.text, start);
            Problem::new(self.span(start, boundary_after(self.text, end).max(start)), message).hint(hint)
        };
        match kind {
            Kind::UnterminatedObject | Kind::UnterminatedArray => {
                let last = self.text.trim_end().len();
                Problems(vec![
                    problem(start, start + 1, message),
                    problem(last, last, "the text ends before everything is closed"),
                ])
            }
            Kind::ExpectedComma => {
                // The library points behind the value before the comma, which may be lines above.
                let rest = self.text[start..].trim_start();
                let at = self.text.len() - rest.len();
                problem(at, at + rest.chars().next().map_or(0, char::len_utf8), message).into()
            }
            _ => problem(start, end, message).into(),
        }
    }
}

/// Whether the string that begins this line ends on it.
fn has_end(line: &str) -> bool {
    let mut characters = line.chars();
    let quote = characters.next();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            _ if Some(character) == quote => return true,
            _ => {}
        }
    }
    false
}

/// A message for a character that begins nothing in JSON, and what to do.
fn character_message(character: Option<char>) -> (&'static str, &'static str) {
    match character {
        Some('#') => ("a `#` begins no comment in JSON", "remove it, or put it under a key such as \"_comment\""),
        Some('“' | '”' | '„' | '‘' | '’') => ("a curly quote", "write a straight double quote"),
        Some('`') => ("a backtick", "remove the Markdown around the JSON"),
        Some('=') => ("an equals sign", "write a colon between the key and its value"),
        Some(';') => ("a semicolon", "write a comma"),
        Some(',') => message_and_hint(&Kind::UnexpectedComma),
        Some(letter) if letter.is_alphabetic() => message_and_hint(&Kind::UnexpectedWord),
        _ => ("not valid JSON", "check the quotes, commas and brackets here and right before"),
    }
}

/// A message for each syntax error, and what to do.
fn message_and_hint(kind: &Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::ExpectedComma => ("a comma is missing before this", "add a comma after the value before it"),
        Kind::UnexpectedComma => ("a comma too many", "remove it"),
        Kind::ExpectedColonAfterObjectKey => {
            ("a key needs a colon and a value after it", "write \"key\": \"value\"; check the quotes")
        }
        Kind::UnexpectedColon => ("an unexpected colon", "check the quotes and commas before it"),
        Kind::ExpectedObjectValue => ("a key without a value", "write its value, or remove the key"),
        Kind::UnexpectedCloseBrace => ("an unexpected `}`", "remove it, or add the missing `]` or value before it"),
        Kind::UnexpectedCloseBracket => ("an unexpected `]`", "remove it, or add the missing `}` or value before it"),
        Kind::UnterminatedObject => ("this `{` is never closed", "add the missing `}`"),
        Kind::UnterminatedArray => ("this `[` is never closed", "add the missing `]`"),
        Kind::UnterminatedCommentBlock => ("this comment is never closed", "add `*/`"),
        Kind::MultipleRootJsonValues => (
            "more text after the end of the JSON value",
            "remove it, or a closing bracket before it; the whole file is one object: { … }",
        ),
        Kind::String(_) => ("not a valid escape in JSON", "write each backslash twice"),
        Kind::UnexpectedWord => ("not a JSON value", "put it in double quotes; other words are true, false and null"),
        Kind::NestingDepthExceeded => ("nested deeper than 512 levels", "is it the right file?"),
        Kind::HexadecimalNumbersNotAllowed
        | Kind::UnaryPlusNumbersNotAllowed
        | Kind::BareDecimalPointNumbersNotAllowed
        | Kind::NonFiniteNumbersNotAllowed
        | Kind::ExpectedDigit
        | Kind::ExpectedDigitFollowingNegativeSign
        | Kind::ExpectedPlusMinusOrDigitInNumberLiteral => ("not a JSON number", "write it in decimal"),
        _ => ("not valid JSON", "check the quotes, commas and brackets here and right before"),
    }
}

#[cfg(test)]
mod tests;
