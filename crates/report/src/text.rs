//! Escapes text from peers, so that it cannot control a terminal or break the format of a report.

use std::borrow::Cow;

use textwrap::{WordSeparator, WordSplitter, core::display_width};

/// Whether a character controls a terminal, changes the text direction, or is invalid in XML.
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' | '\u{fffe}'..='\u{ffff}')
}

/// Escapes harmful characters and line breaks, so that the text is one line.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return text.into();
    }
    let mut printable = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_harmful(character) {
            true => printable.extend(character.escape_default()),
            false => printable.push(character),
        }
    }
    printable.into()
}

/// The longest text of a report for another program, which may hold it several times.
const LONGEST: usize = 64 << 10;

/// The beginning of a text, if it is very long.
pub(crate) fn beginning(text: &str) -> Cow<'_, str> {
    match text.len() {
        length if length > LONGEST => {
            format!("{}… ({length} bytes)", &text[..rehearse_document::text::boundary_before(text, LONGEST)]).into()
        }
        _ => text.into(),
    }
}

/// The lines of a text, each [`printable`] and no command of GitHub; a tab is four spaces.
pub fn printable_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| without_command(printable(&line.replace('\t', "    ")).into_owned()))
}

/// A text whose lines are [`printable_lines`].
pub fn printable_text(text: &str) -> String {
    printable_lines(text).collect::<Vec<_>>().join("\n")
}

/// A line of standard output is a workflow command if it begins with `::` after spaces, or if `##[` is anywhere in it.
fn without_command(line: String) -> String {
    let line = if line.contains("##[") { line.replace("##[", "#\\u{23}[") } else { line };
    match line.trim_start().starts_with("::") {
        true => line.replacen(':', "\\u{3a}", 1),
        false => line,
    }
}

/// How deep the lines of a text stand after its first one.
const DEEPEST: usize = 8;

/// Lines break only at spaces, so that a link and a name stay whole.
pub(crate) fn wrapping<'a>(width: usize) -> textwrap::Options<'a> {
    let options = textwrap::Options::new(width).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    options.word_separator(WordSeparator::AsciiSpace)
}

/// Writes a text in lines that are not wider: `first` stands before it, and spaces before its other lines. Columns that a
/// line aligns with spaces stay.
pub(crate) fn block(out: &mut String, first: &str, text: &str, width: usize) {
    let indent = " ".repeat(display_width(first).min(DEEPEST));
    let mut before = first.to_owned();
    if text.is_empty() {
        out.extend([first.trim_end(), "\n"]);
    }
    for line in printable_lines(text) {
        let options = wrapping(width.max(40)).initial_indent(&before).subsequent_indent(&indent);
        let lines = match line.starts_with(' ') {
            true => vec![format!("{before}{line}").into()],
            false => textwrap::wrap(&line, options),
        };
        lines.iter().for_each(|line| out.extend([line.trim_end(), "\n"]));
        before.clone_from(&indent);
    }
}

/// A list in lines that are not wider: what does not fit goes on below the last column that begins in the first three
/// quarters of the width. Columns have two spaces between them.
pub fn folded(list: &str, width: usize) -> String {
    let most = width / 4 * 3;
    let fold = |line: &str| {
        // The end of a style stands between two columns.
        let line = &line.replace("\u{1b}[0m ", " \u{1b}[0m");
        let begins = line.match_indices("  ").map(|(at, _)| at + 2).filter(|at| !line[*at..].starts_with(' '));
        let column = begins.map(|at| display_width(&line[..at])).filter(|column| *column <= most).last();
        let indent = " ".repeat(column.unwrap_or_default());
        textwrap::fill(line, wrapping(width).subsequent_indent(&indent))
    };
    let lines = list.lines().map(|line| if display_width(line) <= width { line.to_owned() } else { fold(line) });
    lines.map(|line| line + "\n").collect()
}

/// The beginning of a text, so that it is not wider.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_on_below_its_last_column() {
        let list = "\u{1b}[1mbasic\u{1b}[0m   Four tools that every client survives.\nhuge    Large.\n";
        let narrow =
            "\u{1b}[1mbasic \u{1b}[0m  Four tools that\n        every client\n        survives.\nhuge    Large.\n";
        assert_eq!(folded(list, 24), narrow);
        assert_eq!(folded(list, 100), list);
    }

    #[test]
    fn a_text_from_outside_cannot_control_the_terminal() {
        assert_eq!(printable("naïve 世界"), "naïve 世界");
        assert_eq!(
            printable("a\u{1b}[2Jb\nc\u{9b}m\u{202e}\u{ffff}\u{e0041}"),
            "a\\u{1b}[2Jb\\nc\\u{9b}m\\u{202e}\\u{ffff}\\u{e0041}"
        );
    }

    #[test]
    fn of_a_very_long_text_the_beginning_is_shown() {
        assert_eq!(beginning("naïve"), "naïve");
        let long = format!("{}ï!", "x".repeat(LONGEST - 1));
        assert_eq!(beginning(&long), format!("{}… (65538 bytes)", "x".repeat(LONGEST - 1)));
    }

    #[test]
    fn a_line_is_no_workflow_command() {
        let lines = printable_lines("  ::error::x\na ::error::x\n##[group]y");
        assert_eq!(lines.collect::<Vec<_>>(), ["  \\u{3a}:error::x", "a ::error::x", "#\\u{23}[group]y"]);
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(printable_lines("a\r\n\tb\rc").collect::<Vec<_>>(), ["a", "    b\\rc"]);
    }
}
