//! Results as Markdown: the summary of a job, or the text of an issue.
//!
//! GitHub refuses a summary of more than 1 MiB as a whole.

use std::fmt::Write;

use crate::{
    last_lines,
    summary::{Failure, Matrix, Outcome, Section, Summary, Table, TableRow, counted_word},
    text::{printable, printable_lines},
};

/// The largest report in bytes.
const MOST: usize = 900 << 10;
/// How many failures have details.
const DETAILED: usize = 50;
/// How many places of a failure are named, and how much that was not tested for a reason.
const PLACES: usize = 12;
/// How many rows a matrix has.
const ROWS: usize = 200;
/// How many lines of traffic are shown, and how long they are.
const LINES: usize = 12;
const WIDTH: usize = 400;

/// The report, with a final newline.
pub(crate) fn render(summary: &Summary) -> String {
    let mut out = format!("# rehearse: {}\n\n", summary.phrase());
    for section in &summary.sections {
        let mut part = String::new();
        self::section(&mut part, section);
        if out.len() + part.len() > MOST {
            let _ = writeln!(out, "The section *{}* is left out: the report would be too large.\n", section.title);
        } else {
            out.push_str(&part);
        }
    }
    out
}

fn section(out: &mut String, section: &Section) {
    let counts: Vec<_> =
        section.counts.iter().map(|(outcome, count)| format!("{count} {}", outcome.phrase())).collect();
    let all: usize = section.counts.iter().map(|(_, count)| count).sum();
    let _ = match all {
        0 => writeln!(out, "**{}**\n", section.title),
        _ => {
            let all = counted_word(all, section.unit.trim_end_matches('s'));
            writeln!(out, "**{}**: {all}: {}\n", section.title, counts.join(", "))
        }
    };
    if let Some(sentence) = &section.sentence {
        let _ = writeln!(out, "{}\n", escaped(sentence));
    }
    for (name, details) in &section.subjects {
        let all: Vec<_> = std::iter::once(name).chain(details).map(|text| escaped(text)).collect();
        let _ = writeln!(out, "{}\n", all.join(" · "));
    }
    for failure in section.failures.iter().take(DETAILED) {
        self::failure(out, failure);
    }
    if let more @ 1.. = section.failures.len().saturating_sub(DETAILED) {
        let _ = writeln!(out, "… and {more} more causes, in the other reports.\n");
    }
    section.tables.iter().for_each(|it| table(out, it));
    if let Some(matrix) = &section.matrix {
        self::matrix(out, matrix);
    }
    for (reason, ids) in section.untested.iter().take(DETAILED) {
        let (named, more) = ids.split_at(ids.len().min(PLACES));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let _ = writeln!(out, "- {} not tested: {}: {}{more}", ids.len(), escaped(reason), escaped(&named.join(", ")));
    }
    for remark in section.main_remarks().take(DETAILED) {
        let _ = writeln!(out, "- {}", escaped(&remark.text));
    }
    let facts = section.facts.iter().filter(|(_, fact)| !fact.is_empty());
    let facts: Vec<_> = facts.map(|(name, fact)| format!("{name} {}", escaped(fact))).collect();
    let _ = writeln!(out, "\n{}\n", facts.join(" · "));
}

fn failure(out: &mut String, failure: &Failure) {
    let first: String = failure.messages.first().map(|it| it.chars().take(160).collect()).unwrap_or_default();
    let places = match failure.places.len() {
        0 | 1 => String::new(),
        many => format!(" in {many} places"),
    };
    let level = failure.level.as_ref().map(|level| format!(" {}", no_link(level))).unwrap_or_default();
    let _ = writeln!(
        out,
        "<details><summary>{} <b>{}</b>{level}{places}: {}</summary>\n",
        failure.outcome.mark(),
        no_link(&failure.title),
        no_link(&first)
    );
    for message in &failure.messages {
        let message: String = message.chars().take(2000).collect();
        let _ = writeln!(out, "{}\n", escaped(&message));
    }
    if let Some(rule) = &failure.rule {
        let _ = writeln!(out, "> {} [{}]({})\n", escaped(&rule.text), rule.link_name(), link(&rule.link));
    }
    let places: Vec<_> = failure.places.iter().take(PLACES).map(|place| escaped(place)).collect();
    let more = failure.places.len().saturating_sub(PLACES);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let _ = writeln!(out, "{}{more}\n", places.join(", "));
    if let Some(source) = &failure.source {
        let lines = source
            .lines
            .iter()
            .map(|(number, line)| format!("{number:>4} {} {line}", if *number == source.line { "▶" } else { " " }));
        block(out, &format!("{}:{}", source.path, source.line), lines);
    }
    block(out, "difference", failure.difference.iter().map(|(sign, line)| format!("{sign} {line}")));
    let traffic = last_lines(&failure.wire, LINES).map(|it| {
        let text: String = it.line.text.chars().take(WIDTH).collect();
        format!("{:>9.1} ms {} {text}", it.line.at.as_secs_f64() * 1e3, it.line.sign())
    });
    block(out, "traffic", traffic);
    block(out, "standard error", failure.stderr.iter().cloned());
    block(out, "do it again", failure.again.iter().cloned());
    out.push_str("</details>\n\n");
}

/// A code block that its text cannot end.
fn block(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.flat_map(|line| printable_lines(&line).collect::<Vec<_>>()).collect();
    if lines.is_empty() {
        return;
    }
    let longest = lines.iter().flat_map(|line| line.split(|it| it != '`')).map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "{}\n{fence}text\n{}\n{fence}\n", escaped(title), lines.join("\n"));
}

fn matrix(out: &mut String, matrix: &Matrix) {
    let rows: Vec<_> = matrix.groups.iter().flat_map(|group| &group.rows).collect();
    // What passed everywhere says little.
    let is_open = |outcome: Outcome| outcome < Outcome::Accepted;
    let open = rows.iter().filter(|row| row.cells.iter().flatten().any(|(outcome, _)| is_open(*outcome)));
    let open: Vec<_> = open.collect();
    if open.is_empty() {
        return;
    }
    let heads = matrix.columns.iter().map(|(group, name)| format!(" {} {} |", escaped(group), escaped(name)));
    let _ = writeln!(out, "| |{}\n|---|{}", heads.collect::<String>(), "---|".repeat(matrix.columns.len()));
    for row in open.iter().take(ROWS) {
        let marks = row.cells.iter().map(|it| format!(" {} |", it.map_or("", |(outcome, _)| outcome.mark())));
        let _ = writeln!(out, "| {} |{}", escaped(&row.name), marks.collect::<String>());
    }
    let hidden = rows.len() - open.len().min(ROWS);
    let _ = writeln!(out, "\n{hidden} other rows are not shown.\n");
}

fn table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "{}\n", escaped(&table.title));
    if !table.rows.is_empty() {
        let _ = writeln!(out, "| | {} |\n|---|{}", table.heads.join(" | "), "---:|".repeat(table.heads.len()));
        for TableRow { outcome, name, cells } in &table.rows {
            let mark = outcome.map(|outcome| format!("{} ", outcome.mark())).unwrap_or_default();
            let _ = writeln!(out, "| {mark}{} | {} |", escaped(name), cells.join(" | "));
        }
        out.push('\n');
    }
    for remark in &table.remarks {
        let _ = writeln!(out, "- {}", escaped(&remark.text));
    }
}

/// A text in one line that is not markup, no link and no mention.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in html(text).chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '(' | ')' | '$' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    // Nor is it an address or a workflow command.
    let out = out.replace("://", ":\u{200b}//").replace("::", ":\u{200b}:").replace("www.", "www\u{200b}.");
    // Nor does it begin a list.
    let is_list =
        out.starts_with(['-', '+']) || out.trim_start_matches(|it: char| it.is_ascii_digit()).starts_with('.');
    if is_list { format!("\u{200b}{out}") } else { out }
}

/// A text within markup. A zero-width space keeps a name from being one.
fn html(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('@', "@\u{200b}")
}

/// A text within markup in which brackets make no link.
fn no_link(text: &str) -> String {
    html(text).replace('[', "&#91;").replace(']', "&#93;")
}

/// The target of a link.
fn link(target: &str) -> String {
    match target.starts_with("https://") {
        true => target.replace(['(', ')', ' ', '<', '>'], ""),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_neither_markup_nor_a_mention() {
        assert_eq!(escaped("<b>@all</b> [x](y)"), "&lt;b&gt;@\u{200b}all&lt;/b&gt; \\[x\\]\\(y\\)");
        let mut out = String::new();
        block(&mut out, "t", ["````".to_owned()].into_iter());
        assert_eq!(out, "t\n`````text\n````\n`````\n\n");
    }
}
