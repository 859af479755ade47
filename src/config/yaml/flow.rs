//! Which places of YAML are within brackets, where a value without quotes ends at a comma.

/// How deep a place is within brackets, all of which were counted up to there.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::config) struct Flow {
    at: usize,
    depth: usize,
    /// Braces within a text without quotes, such as those of a reference.
    inner: usize,
    quote: Option<char>,
    /// Whether a value may begin here.
    is_value: bool,
    /// How far in this line is, and the line with the outermost bracket.
    indent: usize,
    outer: usize,
}

impl Flow {
    /// Counts on up to a place that is not before this one.
    pub(in crate::config) fn up_to(mut self, text: &str, at: usize) -> Flow {
        for (index, character) in text.get(self.at..at).unwrap_or_default().char_indices() {
            match (self.quote, character) {
                (_, '\n') => self.begin_line(&text[self.at + index + 1..]),
                (Some(quote), _) if quote == character => self.quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') if self.is_value => self.quote = Some(character),
                (None, '[' | '{') if self.is_value => {
                    self.outer = if self.depth == 0 { self.indent } else { self.outer };
                    self.depth += 1;
                }
                (None, '[' | '{') => self.inner += 1,
                (None, ']' | '}') if self.inner > 0 => self.inner -= 1,
                (None, ']' | '}') => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.is_value =
                matches!(character, ':' | '-' | ',' | '[' | '{' | '\n') || self.is_value && character.is_whitespace();
        }
        self.at = self.at.max(at);
        self
    }

    /// A line that is not further in than the one with the bracket closes it, or it was none.
    fn begin_line(&mut self, line: &str) {
        let bare = line.trim_start_matches([' ', '\t']);
        (self.indent, self.quote, self.inner) = (line.len() - bare.len(), None, 0);
        if self.indent <= self.outer && !bare.starts_with([']', '}', '\r', '\n']) && !line.starts_with('\t') {
            self.depth = 0;
        }
    }

    pub(in crate::config) fn is_open(self) -> bool {
        self.depth > 0
    }
}

/// The text with a blank for each tab in the indentation of lines within brackets, where it indents nothing; `None` if
/// there is none.
pub(super) fn without_tabs(text: &str) -> Option<String> {
    let (mut flow, mut bare, mut start) = (Flow::default(), String::new(), 0);
    for line in text.split_inclusive('\n') {
        flow = flow.up_to(text, start);
        start += line.len();
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        match flow.is_open() && line[..indent].contains('\t') {
            true => bare.extend([&" ".repeat(indent), &line[indent..]]),
            false => bare.push_str(line),
        }
    }
    (bare != text).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_within_brackets_until_they_end() {
        for (text, expected) in [
            ("a: {b: ^", true),
            ("a: [b, {c: d}, ^", true),
            ("a: {b: ${X}, ^", true),
            ("a: {\n  b: \"}\", ^", true),
            ("a: {\n\n  b: c\n}\nd: ^", false),
            ("a: {b\nc: ^", false),
            ("a: b{c ^", false),
            ("a: \"{\" ^", false),
            ("- {a: b} ^", false),
        ] {
            let at = text.find('^').expect("a mark");
            let halfway = Flow::default().up_to(text, at / 2);
            assert_eq!(halfway.up_to(text, at).is_open(), expected, "{text}");
        }
    }
}
