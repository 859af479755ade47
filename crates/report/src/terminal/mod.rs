//! The text report of every kind of result. What matters most comes last, where a terminal shows it: what was run, the
//! tables, what was not tested, remarks, what failed with the worst at the end, the verdict.

mod failure;
mod frames;
mod matrix;
mod table;
mod violation;

use std::fmt::Write;

use anstyle::Style;
use textwrap::core::display_width;

pub(crate) use failure::failure;
pub use violation::violation_text;

use crate::{
    Layout, Verdict,
    groups::grouped,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    summary::{Outcome, Remark, Section, Summary, readable},
    text::{block, printable},
};

/// How many reasons are named for which something was not tested, and how much with each.
const REASONS: usize = 3;
const NAMES: usize = 200;
/// How many remarks with one outcome are shown, and how many causes of failures.
const REMARKS: usize = 20;
const CAUSES: usize = 40;

/// The report, with a final newline.
pub(crate) fn render(summary: &Summary, layout: &Layout) -> String {
    let mut out = String::new();
    let is_one = summary.sections.len() == 1;
    for section in &summary.sections {
        if !is_one {
            let _ = writeln!(out, "{}\n", styled(section.title, STRONG));
        }
        self::section(&mut out, section, layout);
        if !is_one {
            out.push('\n');
        }
    }
    if !is_one {
        let parts = summary.sections.iter().map(|section| format!("{}: {}", section.title, section.phrase()));
        let parts = parts.collect::<Vec<_>>().join("; ");
        let _ = writeln!(out, "{}   {parts}", styled(summary.phrase(), of_verdict(summary.verdict)));
    }
    out
}

fn section(out: &mut String, section: &Section, layout: &Layout) {
    section.subjects.iter().for_each(|(name, details)| subject(out, name, details, layout.width));
    if !section.subjects.is_empty() {
        out.push('\n');
    }
    if let Some(matrix) = &section.matrix {
        matrix::matrix(out, matrix, layout.width);
    }
    section.tables.iter().for_each(|table| table::table(out, table, layout));
    untested(out, section, layout);
    if remarks(out, &section.remarks, "", layout) {
        out.push('\n');
    }
    let shown = if layout.is_verbose { usize::MAX } else { CAUSES };
    if let more @ 1.. = section.failures.len().saturating_sub(shown) {
        let _ = writeln!(out, "{}\n", styled(format!("… and {more} more causes, which --verbose shows"), DIM));
    }
    let is_named = section.subjects.len() > 1;
    let mut failures: Vec<_> = section.failures.iter().take(shown).collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.outcome));
    for it in failures {
        failure(out, it, is_named, layout);
        out.push('\n');
    }
    conclusion(out, section, layout.width);
}

/// What it is about, in one line if that is wide enough.
fn subject(out: &mut String, name: &str, details: &[String], width: usize) {
    let name = printable(name);
    let details: Vec<_> = details.iter().map(|it| printable(it)).collect();
    let length = display_width(&name) + details.iter().map(|it| display_width(it) + 3).sum::<usize>();
    let separator = if length > width { "\n  " } else { "   " };
    out.push_str(&styled(name, STRONG));
    details.iter().for_each(|it| out.extend([separator, it]));
    out.push('\n');
}

/// What was not tested, by reason: first what an option can change.
fn untested(out: &mut String, section: &Section, layout: &Layout) {
    let total: usize = section.untested.iter().map(|(_, names)| names.len()).sum();
    if total == 0 {
        return;
    }
    // The counts have a check once for each version.
    let counted =
        section.counts.iter().find(|(outcome, _)| *outcome == Outcome::NotTested).map_or(0, |(_, count)| *count);
    let counted = (counted > total).then(|| format!("; {counted} in all versions together"));
    let _ = writeln!(out, "{}{}", styled(format!("Not tested: {total}"), DOUBTFUL), counted.unwrap_or_default());
    let mut reasons: Vec<_> = section.untested.iter().collect();
    reasons.sort_by_key(|(reason, names)| (!reason.contains("--"), std::cmp::Reverse(names.len())));
    let shown = if layout.is_verbose { reasons.len() } else { REASONS };
    for (reason, names) in reasons.iter().take(shown) {
        let count = format!("  {:>3}  ", names.len());
        let (shown, more) = names.split_at(names.len().min(NAMES));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        let names = if layout.is_verbose { format!(": {}{more}", shown.join(", ")) } else { String::new() };
        block(out, &count, &format!("{reason}{names}"), layout.width);
    }
    let more: usize = reasons.iter().skip(shown).map(|(_, names)| names.len()).sum();
    if more > 0 {
        let _ = writeln!(out, "  {more:>3}  for other reasons; --verbose lists all of them");
    }
    out.push('\n');
}

/// Returns whether there are some.
fn remarks(out: &mut String, remarks: &[Remark], indent: &str, layout: &Layout) -> bool {
    let shown = remarks.iter().filter(|remark| layout.is_verbose || !remark.is_detail);
    let groups = grouped(shown.map(|remark| (remark.outcome, &remark.text)), |one, other| one == other);
    let most = if layout.is_verbose { usize::MAX } else { REMARKS };
    for (outcome, texts) in &groups {
        let (mark, space) = (format!("{indent}{} ", mark(*outcome)), format!("{indent}  "));
        for text in texts.iter().take(most) {
            // It belongs to the one above.
            let mark = if text.starts_with(' ') { &space } else { &mark };
            block(out, mark, text.trim_start(), layout.width);
        }
        if let more @ 1.. = texts.len().saturating_sub(most) {
            let _ = writeln!(out, "{indent}  {}", styled(format!("… and {more} more, which --verbose shows"), DIM));
        }
    }
    !groups.is_empty()
}

/// The verdict, what it comes from, how long it took, and the seed.
fn conclusion(out: &mut String, section: &Section, width: usize) {
    let word = section.phrase();
    let is_plain = word == section.verdict.phrase();
    let style = if is_plain { of_verdict(section.verdict) } else { DOUBTFUL };
    let duration = (!section.duration.is_zero()).then(|| readable(section.duration));
    let facts: Vec<_> = duration.into_iter().chain(section.seed.map(|seed| format!("seed {seed}"))).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    block(out, &format!("{}   ", styled(word, style)), &format!("{}{facts}", section.conclusion()), width);
}

const fn of_verdict(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Passed => GOOD,
        Verdict::Failed | Verdict::CannotRun => BAD,
        Verdict::Incomplete | Verdict::NothingTested => DOUBTFUL,
    }
}

const fn style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Failed | Outcome::Error => BAD,
        Outcome::Warning | Outcome::NotTested | Outcome::NotRun => DOUBTFUL,
        Outcome::Passed => GOOD,
        Outcome::Accepted | Outcome::Info | Outcome::NotApplicable => DIM,
    }
}

fn mark(outcome: Outcome) -> String {
    styled(outcome.mark(), style(outcome))
}

fn end_line(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
}
