//! Descriptions for people: sentences, wrapped lines, and Markdown as plain text.

use std::{
    borrow::Cow,
    io::{self, IsTerminal},
    sync::LazyLock,
};

use regex::Regex;
use unicode_width::UnicodeWidthStr;

/// The width of an overview.
pub(crate) const OVERVIEW_WIDTH: usize = 80;

/// Links, images and emphasis in one line of Markdown.
static INLINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let link = r"!?\[(?<text>[^\]]*)\]\((?<url>[^)\s]+)[^)]*\)";
    let emphasis = r"(?:\*\*|`)+(?<strong>[^*`]+)(?:\*\*|`)+";
    Regex::new(&format!("{link}|{emphasis}")).ok()
});

/// The text without the marks of Markdown: headings, emphasis, code, links.
fn without_markdown(text: &str) -> String {
    let line = |line: &str| {
        let line = match line.trim_start_matches('#') {
            heading if heading.len() < line.len() && heading.starts_with(' ') => heading.trim_start(),
            _ => line,
        };
        let plain = |found: &regex::Captures<'_>| match (found.name("strong"), found.name("text"), found.name("url")) {
            (Some(strong), ..) => strong.as_str().to_owned(),
            (_, Some(text), Some(url)) => format!("{} ({})", text.as_str(), url.as_str()),
            _ => String::new(),
        };
        INLINE.as_ref().map_or_else(|| line.to_owned(), |inline| inline.replace_all(line, plain).into_owned())
    };
    text.lines().filter(|line| !line.trim_start().starts_with("```")).map(|text| line(text) + "\n").collect()
}

/// A description: on a terminal without the marks of Markdown.
pub(crate) fn plain(description: &str) -> Cow<'_, str> {
    match io::stdout().is_terminal() {
        true => without_markdown(description).into(),
        false => description.into(),
    }
}

/// The first sentence of a text in one line; at most its first paragraph.
pub(crate) fn first_sentence(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = paragraph.split_whitespace().collect();
    let ends = |word: &&&str| word.ends_with(['.', '!', '?']) && !matches!(**word, "e.g." | "i.e." | "etc." | "vs.");
    let end = words.iter().position(|word| ends(&word)).map_or(words.len(), |end| end + 1);
    words[..end].join(" ")
}

/// The lines of a text with at most this width, where its words allow it.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.width() + 1 + word.width() <= width => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_with_its_point_or_paragraph() {
        for (text, sentence) in [
            ("Reads a file. It must exist.", "Reads a file."),
            ("\n  Reads files, e.g. of\n  logs! Twice", "Reads files, e.g. of logs!"),
            ("Reads 2.5 MB\n\nArgs: path", "Reads 2.5 MB"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), sentence);
        }
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(wrap("a bc def ghijklmnop q", 6), ["a bc", "def", "ghijklmnop", "q"]);
        assert_eq!(wrap("", 6), [""]);
    }

    #[test]
    fn the_marks_of_markdown_are_removed() {
        let text = "# Title\nUse **`read`** or `x_y`, see [the docs](https://d.example \"t\") #1 2*3*4 __init__\n```json\n{}\n```\n";
        let plain = "Title\nUse read or x_y, see the docs (https://d.example) #1 2*3*4 __init__\n{}\n";
        assert_eq!(without_markdown(text), plain);
    }
}
