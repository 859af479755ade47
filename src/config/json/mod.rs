//! JSON as people write it, into a [`Node`] tree with byte spans.
//!
//! Every program reads its own JSON: one wants RFC 8259 to the letter, the next strips comments, a third takes JSON5. So
//! this reader takes whatever any of them would take, and a few mistakes more from which it can go on, and keeps a list of
//! the [`Liberty`]s that the text takes. Whoever knows the program judges them.

mod balance;
mod bracket;
mod object;
mod quote;
mod reader;
mod scalar;

pub(super) use reader::is_invisible;
pub(super) use scalar::is_nothing;

use super::{Duplicate, Node, Problems, Source, Span};

/// A JSON text that could be read, and what it takes a reader to accept it.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub root: Node,
    /// In the order of the text.
    pub liberties: Vec<Liberty>,
    /// Keys that occur twice in one object; the last one counts, as in JavaScript.
    pub duplicates: Vec<Duplicate>,
}

/// Something that RFC 8259 does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liberty {
    pub kind: LibertyKind,
    pub span: Span,
    /// Of brackets that do not fit, the place of the other one; of what is missing, that before which it belongs.
    pub other: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LibertyKind {
    /// U+FEFF before the text.
    ByteOrderMark,
    /// `// …` or `/* … */`.
    Comment,
    /// `# …`.
    HashComment,
    /// `{env:NAME}` or `{file:PATH}` without quotes.
    BareReference,
    /// Members of an object without the braces around them.
    Fragment,
    /// `[1, 2, ]`.
    TrailingComma,
    /// `'text'`.
    SingleQuotes,
    /// `'text"` or `"text'`.
    MixedQuotes,
    /// `{ key: 1 }`.
    BareKey,
    /// `0x1F`, `+1`, `.5`, `5.`.
    NumberForm,
    /// `None`, `undefined`, `NaN`, `True`; a text without quotes.
    BareValue,
    /// An escape that only JSON5 has, or a line of a text that goes on in the next.
    TextForm,
    /// A blank that is not space, tab or newline: often from a web page.
    Blank,
    /// A text over several lines, or with another raw control character.
    ControlCharacter,
    /// `“text”`.
    CurlyQuotes,
    /// `` `text` ``.
    Backticks,
    /// `"text, "next"`: the text without the quote after it.
    UnendedText,
    /// `text"`: the text without the quote before it.
    UnbegunText,
    /// `"a text""`, at the quote too many.
    SurplusQuote,
    /// `"say "hi""`, from the first of the quotes to the last.
    InnerQuotes,
    /// `{"a": 1 "b": 2}`, at the second member.
    MissingComma,
    /// `[1,, 2]`.
    SurplusComma,
    /// `[1; 2]`, at what stands where a comma belongs.
    WrongComma,
    /// `"a":: 1`.
    SurplusColon,
    /// `{"a" 1}`, at the value.
    MissingColon,
    /// `{"a" = 1}`, at what stands where a colon belongs.
    WrongColon,
    /// `{"a": }`, at the key. It is read as null.
    NoValue,
    /// `...` for what somebody left out.
    Ellipsis,
    /// `+` or `-` at the beginning of a line.
    DiffMark,
    /// An escape that nobody has, such as `\U` in `C:\Users`: it is read as it is written.
    UnknownEscape,
    /// An object or list that is not closed: this is where it begins.
    Unclosed,
    /// `"a": 1, 2]`, at the first value.
    UnopenedList,
    /// `"a": "b": 1}`, at the first key.
    UnopenedObject,
    /// `[1}`, at the brace.
    WrongBracket,
    /// `{"a": 1]}`, at the bracket; or `{{"a": 1}}`, at the first of two that do not belong there.
    SurplusBracket,
    /// `"a": [1, "b": 2]`, at the bracket that closes; the other place is where it belongs.
    LateBracket,
    /// `{1, 2}` or `(1, 2)`, at the first bracket.
    WrongPairOfList,
    /// `["a": 1]` or `("a": 1}`, at the first bracket.
    WrongPairOfObject,
    /// Something after the value.
    TextAfter,
    /// No value at all.
    Nothing,
}

/// Reads a JSON text.
///
/// # Errors
/// Where and why nobody could tell what is meant; nesting deeper than 128 levels. Never more than one problem.
pub fn parse(source: &Source) -> Result<Document, Problems> {
    reader::read(&source.text, reader::OF_PEOPLE)
}

/// As [`parse`], for what programs write: nesting is limited to 512 levels.
///
/// # Errors
/// As those of [`parse`].
pub(crate) fn parse_any(source: &Source) -> Result<Document, Problems> {
    reader::read(&source.text, reader::OF_PROGRAMS)
}

#[cfg(test)]
mod tests;
