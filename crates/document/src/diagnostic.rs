//! Problems of a file: location, message and hint.

use std::{
    borrow::Cow,
    fmt, io,
    ops::Range,
    path::Path,
    sync::{Arc, OnceLock},
};

use miette::{LabeledSpan, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::text::text_of;

/// A value longer than this is not searched for its parts.
const LONG: usize = 1000;

/// A text with its name for messages.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
    /// Where each line begins, once a position was asked for.
    lines: OnceLock<Vec<usize>>,
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.text == other.text
    }
}

impl Eq for Source {}

/// A byte range of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { name: name.into(), text: text.into(), lines: OnceLock::new() })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The I/O error, `FileTooLarge`, or `InvalidData` if the file is not UTF-8.
    pub fn read(path: &Path) -> io::Result<Arc<Source>> {
        Ok(Source::new(path.display().to_string(), text_of(path)?))
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let lines = self.lines.get_or_init(|| {
            let newlines = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect()
        });
        let line = lines.partition_point(|start| *start <= offset);
        (line, self.text[lines[line - 1]..offset].chars().count() + 1)
    }

    /// The location of a part of the value at `span`: the whole value if escapes hide the part.
    pub fn part(&self, span: Span, value: &str, range: Range<usize>) -> Span {
        let (Some(written), Some(part)) = (self.text.get(span.start..span.end), value.get(range.clone())) else {
            return span;
        };
        let quote = usize::from(written.starts_with(['"', '\'']));
        let plain = quote + range.start;
        if value.len() > LONG || written.get(quote..quote + value.len()) == Some(value) {
            let is_there = written.get(plain..).is_some_and(|rest| rest.starts_with(part));
            return if is_there {
                Span { start: span.start + plain, end: span.start + plain + part.len() }
            } else {
                span
            };
        }
        // The part may occur more than once.
        let before = value[..range.start].matches(part).count();
        match written.match_indices(part).nth(before) {
            Some((at, _)) if !part.is_empty() => Span { start: span.start + at, end: span.start + at + part.len() },
            _ => span,
        }
    }
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, miette::MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line(),
            inner.column(),
            inner.line_count(),
        )))
    }
}

/// A problem at a location; the source is added later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub span: Span,
    pub message: Cow<'static, str>,
    pub hint: Option<Cow<'static, str>>,
}

/// All problems, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    pub fn new(span: Span, message: impl Into<Cow<'static, str>>) -> Self {
        Problem { span, message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Problems(vec![problem])
    }
}

impl Problems {
    /// Gives this hint to those that have none.
    #[must_use]
    pub fn or_hint(mut self, hint: &str) -> Self {
        for problem in &mut self.0 {
            problem.hint.get_or_insert_with(|| hint.to_owned().into());
        }
        self
    }

    /// The value; or keeps the problems.
    pub fn keep<T>(&mut self, result: Result<T, Problems>) -> Option<T> {
        result.map_err(|found| self.0.extend(found.0)).ok()
    }

    /// Collects the values, or all problems of those that failed.
    ///
    /// # Errors
    /// The problems of every failed item.
    pub fn collect<T>(items: impl IntoIterator<Item = Result<T, Problems>>) -> Result<Vec<T>, Problems> {
        let (mut values, mut problems) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                Ok(value) => values.push(value),
                Err(found) => problems.extend(found.0),
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(Problems(problems)) }
    }

    /// The four values, or all problems of those that failed.
    ///
    /// # Errors
    /// The problems of every failed value, in the order of the file.
    pub fn all4<A, B, C, D>(
        a: Result<A, Problems>,
        b: Result<B, Problems>,
        c: Result<C, Problems>,
        d: Result<D, Problems>,
    ) -> Result<(A, B, C, D), Problems> {
        match (a, b, c, d) {
            (Ok(a), Ok(b), Ok(c), Ok(d)) => Ok((a, b, c, d)),
            (a, b, c, d) => {
                let found = [a.err(), b.err(), c.err(), d.err()];
                let mut problems: Vec<_> = found.into_iter().flatten().flat_map(|found| found.0).collect();
                problems.sort_by_key(|problem| problem.span.start);
                Err(Problems(problems))
            }
        }
    }

    pub fn in_source(self, source: &Arc<Source>) -> Diagnostics {
        let in_source = |problem| Diagnostic { problem, source: source.clone() };
        Diagnostics(self.0.into_iter().map(in_source).collect())
    }
}

/// A problem in a known source: `file:line:column: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub problem: Problem,
    pub source: Arc<Source>,
}

/// All problems of one file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.position(self.problem.span.start);
        write!(f, "{}:{line}:{column}: {}", self.source.name, self.problem.message)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{diagnostic}")?;
            if let Some(hint) = &diagnostic.problem.hint {
                write!(f, " ({hint})")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (line, column) = self.source.position(self.problem.span.start);
        let mut members = serializer.serialize_struct("Diagnostic", 4)?;
        members.serialize_field("line", &line)?;
        members.serialize_field("column", &column)?;
        members.serialize_field("message", &self.problem.message)?;
        members.serialize_field("hint", &self.problem.hint)?;
        members.end()
    }
}

impl std::error::Error for Diagnostic {}
impl std::error::Error for Diagnostics {}

impl miette::Diagnostic for Diagnostic {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.hint.as_ref().map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&*self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Span { start, end } = self.problem.span;
        let first_line = self.source.text.get(start..end).and_then(|text| text.find('\n'));
        let length = first_line.unwrap_or(end.saturating_sub(start));
        Some(Box::new(std::iter::once(LabeledSpan::new(None, start, length))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("x", "é: 1\nab: 2\n");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(2), (1, 2));
        assert_eq!(source.position(6), (2, 1));
        assert_eq!(source.position(999), (3, 1));
    }

    #[test]
    fn a_part_of_a_value_is_found_where_it_is_written() {
        let source = Source::new("x", r#"["a $A \t $A", "\u0024A"]"#);
        let part = |span, value: &str, range| {
            let Span { start, end } = source.part(span, value, range);
            (start, &source.text[start..end])
        };
        let first = Span { start: 1, end: 13 };
        assert_eq!(part(first, "a $A \t $A", 2..4), (4, "$A"));
        assert_eq!(part(first, "a $A \t $A", 7..9), (10, "$A"));
        let escaped = Span { start: 15, end: 24 };
        assert_eq!(part(escaped, "$A", 0..2), (15, r#""\u0024A""#));
    }
}
