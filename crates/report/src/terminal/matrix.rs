//! Cases by where they ran: a line for each case, or for each area if there are areas.

use std::fmt::Write;

use anstyle::Style;
use rehearse_protocol::Version;

use super::{end_line, style};
use crate::{
    palette::{DIM, STRONG, styled},
    summary::{Matrix, Outcome, Row, RowGroup, counted, counted_word, readable},
    text::printable,
};

/// The number of rows after which a table repeats its header.
const ROWS: usize = 40;
/// The width of a column with a mark, and of one with counts.
const MARK: usize = 6;
const COUNTS: usize = 13;
/// The width of the time behind the columns.
const TIME: usize = 9;
/// The minimum width of the column of names.
const NAME: usize = 8;

/// A line of the table.
struct Line {
    name: String,
    cells: Vec<Option<(String, Style)>>,
    time: String,
}

/// Writes the matrix with its legend; if it is too wide, in parts.
pub(super) fn matrix(out: &mut String, matrix: &Matrix, width: usize) {
    let is_counted = matrix.groups.iter().any(|group| !group.name.is_empty());
    let count = matrix.columns.len();
    let lines: Vec<_> = match is_counted {
        true => {
            let mut all = matrix.groups.iter().flat_map(|group| &group.rows);
            let is_one = matrix.groups.len() == 1;
            let total = (!is_one).then(|| Line { name: "all".to_owned(), ..tally(&mut all, count, true) });
            let groups = matrix.groups.iter().map(|group| of_group(group, count, is_one));
            groups.filter(|line| line.cells.iter().any(Option::is_some)).chain(total).collect()
        }
        false => {
            let rows = matrix.groups.iter().flat_map(|group| &group.rows);
            let (idle, rows): (Vec<_>, Vec<_>) = rows.partition(|row| is_idle(row));
            let cell = (Outcome::NotRun.mark().to_owned(), style(Outcome::NotRun));
            let name = counted_word(idle.len(), matrix.row);
            let folded = Line { name, cells: vec![Some(cell); count], time: String::new() };
            rows.into_iter().map(of_row).chain((!idle.is_empty()).then_some(folded)).collect()
        }
    };
    if lines.is_empty() || count == 0 {
        return;
    }
    let groups: Vec<_> = matrix.columns.chunk_by(|one, other| one.0 == other.0).collect();
    let least = if is_counted { COUNTS } else { MARK };
    let label = |group: &&[(String, String)]| group[0].0.chars().count().div_ceil(group.len()) + 1;
    let column = if groups.len() == 1 { least } else { groups.iter().map(label).max().unwrap_or_default().max(least) };
    let has_times = lines.iter().any(|line| !line.time.is_empty());
    let room = width.saturating_sub(if has_times { TIME } else { 0 });
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
    let name_width = longest.min(room.saturating_sub(count * column)).max(NAME.min(longest)) + usize::from(is_counted);
    let fits = (room.saturating_sub(name_width) / column).max(1);
    let mut parts: Vec<std::ops::Range<usize>> = Vec::new();
    for group in groups.iter().flat_map(|group| group.chunks(fits)) {
        match parts.last_mut().filter(|part| part.len() + group.len() <= fits) {
            Some(part) => part.end += group.len(),
            None => {
                let start = parts.last().map_or(0, |part| part.end);
                parts.push(start..start + group.len());
            }
        }
    }
    for part in parts {
        let lines = lines.iter().filter(|line| line.cells[part.clone()].iter().any(Option::is_some));
        for (number, line) in lines.enumerate() {
            if number % ROWS == 0 {
                heads(out, &matrix.columns[part.clone()], name_width, column, is_counted);
            }
            self::line(out, line, part.clone(), name_width, column);
        }
        out.push('\n');
    }
    legend(out, matrix, is_counted);
}

/// The groups of the columns, if there are several, and their names.
fn heads(out: &mut String, columns: &[(String, String)], name_width: usize, column: usize, is_counted: bool) {
    let (mut groups, mut names) = (" ".repeat(name_width), " ".repeat(name_width));
    let mut previous = None;
    for (group, name) in columns {
        let label = if previous == Some(group) { String::new() } else { printable(group).into_owned() };
        previous = Some(group);
        let name = if is_counted { name } else { short(name).unwrap_or(name) };
        let _ = write!(groups, " {label:<0$}", column - 1);
        let _ = write!(names, " {name:<0$}", column - 1);
    }
    for line in [groups, names].iter().skip(usize::from(is_counted && columns.iter().all(|it| it.0 == columns[0].0))) {
        let _ = writeln!(out, "{}", styled(line.trim_end(), STRONG));
    }
}

/// Year and month of a protocol version, which are enough to distinguish them.
fn short(name: &str) -> Option<&str> {
    name.parse::<Version>().ok().and_then(|_| name.get(2..7))
}

fn line(out: &mut String, line: &Line, part: std::ops::Range<usize>, name_width: usize, column: usize) {
    let mut name = &*line.name;
    if name.chars().count() > name_width {
        // A long name has a line of its own.
        let _ = writeln!(out, "{name}");
        name = "";
    }
    let _ = write!(out, "{name:name_width$}");
    for cell in &line.cells[part] {
        let (text, style) = cell.clone().unwrap_or_default();
        let pad = (column - 1).saturating_sub(text.chars().count());
        let _ = write!(out, " {}{:pad$}", styled(text, style), "");
    }
    if !line.time.is_empty() {
        let _ = write!(out, "{}", styled(format!("{:>TIME$}", line.time), DIM));
    }
    end_line(out);
}

/// Whether nothing of it was run, although it could be.
fn is_idle(row: &Row) -> bool {
    let is_idle = |outcome: Outcome| matches!(outcome, Outcome::NotRun | Outcome::NotApplicable);
    row.worst() == Outcome::NotRun && row.cells.iter().flatten().all(|(outcome, _)| is_idle(*outcome))
}

fn of_row(row: &Row) -> Line {
    let cell = |(outcome, _): (Outcome, _)| (outcome.mark().to_owned(), style(outcome));
    let cells = row.cells.iter().map(|it| it.map(cell)).collect();
    let time = row.duration.map(readable).unwrap_or_default();
    Line { name: printable(&row.name).into_owned(), cells, time }
}

fn of_group(group: &RowGroup, columns: usize, is_whole: bool) -> Line {
    Line { name: printable(&group.title).into_owned(), ..tally(&mut group.rows.iter(), columns, is_whole) }
}

/// How many cases of each column have held, and how many have not; with `is_whole` also how many were not tested.
fn tally(rows: &mut dyn Iterator<Item = &Row>, columns: usize, is_whole: bool) -> Line {
    let rows: Vec<_> = rows.collect();
    let cell = |column: usize| {
        let counts = counted(rows.iter().filter_map(|row| row.cells[column]).map(|(outcome, _)| outcome));
        let of = |outcomes: &[Outcome]| {
            counts.iter().filter(|(outcome, _)| outcomes.contains(outcome)).map(|(_, count)| count).sum::<usize>()
        };
        let (held, untested) = (of(&[Outcome::Passed, Outcome::Info]), of(&[Outcome::NotTested]));
        let bad = of(&[Outcome::Failed, Outcome::Error, Outcome::Warning]);
        let worst = counts.first().map(|(outcome, _)| *outcome)?;
        let (outcome, mut text) = match worst {
            Outcome::NotApplicable => return None,
            Outcome::Failed | Outcome::Error | Outcome::Warning => (worst, format!("{held}  {bad}")),
            _ if of(&[Outcome::Accepted]) > 0 => (Outcome::Accepted, format!("{held}  {}", of(&[Outcome::Accepted]))),
            _ if held > 0 => (Outcome::Passed, held.to_string()),
            _ => (Outcome::NotTested, untested.to_string()),
        };
        if is_whole && untested > 0 && outcome != Outcome::NotTested {
            let _ = write!(text, " {}{untested}", Outcome::NotTested.mark());
        }
        Some((format!("{} {text}", outcome.mark()), style(outcome)))
    };
    Line { name: String::new(), cells: (0..columns).map(cell).collect(), time: String::new() }
}

fn legend(out: &mut String, matrix: &Matrix, is_counted: bool) {
    let legend = match is_counted {
        true => "✓ kept   ▲ kept, warnings   ✗ kept, violated   ≈ kept, accepted   ? not tested".to_owned(),
        false => {
            let cells = matrix.groups.iter().flat_map(|group| &group.rows).flat_map(|row| row.cells.iter().flatten());
            let outcomes = counted(cells.map(|(outcome, _)| *outcome));
            let words = outcomes.iter().map(|(outcome, _)| format!("{} {}", outcome.mark(), outcome.phrase()));
            let has_times = matrix.groups.iter().flat_map(|group| &group.rows).any(|row| row.duration.is_some());
            let times = if has_times { "; time: slowest cell" } else { "" };
            let mut versions = matrix.columns.iter().filter_map(|(_, name)| Some((short(name)?, name)));
            let versions = versions.next().map(|(short, name)| format!("; {short}: version {}", printable(name)));
            format!("{}{times}{}", words.collect::<Vec<_>>().join("  "), versions.unwrap_or_default())
        }
    };
    let _ = writeln!(out, "{}\n", styled(legend, DIM));
}
