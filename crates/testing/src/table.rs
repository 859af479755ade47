//! Tables of texts: a heading behind `## `, then a row a line, its columns separated by ` | `.
//!
//! The last column has the rest of the line; empty lines, those with `# ` and those before the first heading are for people.
//! `⏎`, `␍`, `␉` and `␣` are a line break, a carriage return, a tab and a space, and `\u{…}` is a character by its number.

/// The rows below a heading.
///
/// # Panics
///
/// If there are none, or one has other columns.
pub fn rows<const N: usize>(table: &str, heading: &str) -> Vec<[String; N]> {
    let table = format!("\n{table}");
    let below = table.split("\n## ").skip(1).filter_map(|section| section.strip_prefix(heading)?.strip_prefix('\n'));
    let lines = below.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with("# "));
    let rows: Vec<_> = lines.map(row).collect();
    assert!(!rows.is_empty(), "no rows below {heading:?}");
    rows
}

/// The rows of all headings.
///
/// # Panics
///
/// As [`rows`].
pub fn all<const N: usize>(table: &str) -> Vec<[String; N]> {
    let headings = table.lines().filter_map(|line| line.strip_prefix("## "));
    headings.flat_map(|heading| rows(table, heading)).collect()
}

fn row<const N: usize>(line: &str) -> [String; N] {
    // A last column may be empty.
    let line = format!("{line} ");
    let columns: Vec<_> = line.splitn(N, " | ").map(|column| text(column.trim())).collect();
    columns.try_into().unwrap_or_else(|columns: Vec<_>| panic!("{N} columns, not {}: {line}", columns.len()))
}

fn text(column: &str) -> String {
    let marks = [("⏎", "\n"), ("␍", "\r"), ("␉", "\t"), ("␣", " ")];
    let column = marks.iter().fold(column.to_owned(), |text, (mark, meant)| text.replace(mark, meant));
    let mut parts = column.split("\\u{");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once('}') {
        Some((number, rest)) => match u32::from_str_radix(number, 16).ok().and_then(char::from_u32) {
            Some(character) => format!("{text}{character}{rest}"),
            None => panic!("no character: {part}"),
        },
        None => panic!("no character: {part}"),
    })
}

#[test]
fn marks_stand_for_characters_and_the_last_column_has_the_rest() {
    let table = "Words.\n\n## a\n# not this\nx⏎ |  | \\u{e9} | ␣\n\n## b\n | y |\n";
    assert_eq!(rows(table, "a"), [["x\n", "", "é |  "]]);
    assert_eq!(rows(table, "b"), [["", "y", ""]]);
    assert_eq!(all::<3>(table).len(), 2);
}
