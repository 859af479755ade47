//! Finds the code blocks and code spans of a message, which contain no requests.

/// The Markdown around the requests of a message, read from its beginning.
#[derive(Clone, Debug)]
pub(super) struct Prose<'t> {
    text: &'t str,
    /// The lines before this byte have been read.
    read: usize,
    /// The fence of the open code block: its character and length.
    fence: Option<(char, usize)>,
}

impl<'t> Prose<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Prose { text, read: 0, fence: None }
    }

    /// Whether this byte is in a code block. The bytes of successive calls must not decrease.
    pub(super) fn is_code(&mut self, at: usize) -> bool {
        while self.read <= at {
            let rest = &self.text[self.read..];
            let line = rest.split('\n').next().unwrap_or_default();
            self.line(line);
            self.read += line.len() + 1;
        }
        self.fence.is_some()
    }

    /// Skips a request, whose lines are not Markdown.
    pub(super) fn skip_to(&mut self, at: usize) {
        if self.read < at {
            self.read = at + self.text[at..].find('\n').map_or(self.text.len() - at, |end| end) + 1;
        }
    }

    /// CommonMark, Fenced code blocks; with any indentation, because they may be in a list.
    fn line(&mut self, line: &str) {
        let line = line.trim();
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else { return };
        let rest = line.trim_start_matches(mark);
        let len = line.len() - rest.len();
        match self.fence {
            Some((open, least)) if mark == open && len >= least && rest.is_empty() => self.fence = None,
            None if len >= 3 && !(mark == '`' && rest.contains('`')) => self.fence = Some((mark, len)),
            _ => {}
        }
    }
}

/// Whether a range is in a code span, which starts on its first line and ends on its last.
pub(super) fn is_in_code_span(text: &str, start: usize, end: usize) -> bool {
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let mut open = None;
    for run in runs(&text[line..start]) {
        match open {
            None => open = Some(run),
            Some(least) if least == run => open = None,
            Some(_) => {}
        }
    }
    let after = text[end..].split('\n').next().unwrap_or_default();
    open.is_some_and(|open| runs(after).any(|run| run == open))
}

/// The lengths of the runs of backticks.
fn runs(text: &str) -> impl Iterator<Item = usize> {
    text.split(|c| c != '`').map(str::len).filter(|len| *len > 0)
}

/// Whether only white space stands before this byte on its line.
pub(super) fn is_line_start(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches(|c: char| c.is_whitespace() && c != '\n');
    before.is_empty() || before.ends_with('\n')
}
