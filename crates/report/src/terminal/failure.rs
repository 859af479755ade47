//! What has failed, with all that helps to understand it.

use std::fmt::Write;

use super::{frames, mark};
use crate::{
    Layout,
    groups::grouped,
    palette::{ADDED, DIM, REMOVED, STRONG, styled},
    summary::Failure,
    text::{block, printable, wrapping},
};

/// How many places of a failure are named, and how many command lines.
const PLACES: usize = 8;
const AGAIN: usize = 5;

/// Writes it; `is_named` says whether places of one name have that before them.
pub(crate) fn failure(out: &mut String, failure: &Failure, is_named: bool, layout: &Layout) {
    let width = layout.width;
    let heading = styled(printable(failure.heading()), STRONG);
    for (number, line) in textwrap::wrap(&heading, wrapping(width.saturating_sub(2).max(40))).iter().enumerate() {
        let _ = writeln!(out, "{} {line}", if number == 0 { mark(failure.outcome) } else { " ".to_owned() });
    }
    let title = failure.rule.as_ref().map(|_| failure.title.clone());
    let source = failure.source.as_ref().map(|source| format!("{}:{}", source.path, source.line));
    let facts = [title, failure.level.clone(), source, places(failure, is_named)].into_iter().flatten();
    let facts = facts.collect::<Vec<_>>().join("   ");
    if !facts.is_empty() {
        dim(out, "  ", &facts);
    }
    if let Some(source) = &failure.source {
        let at = source.lines.iter().filter(|(number, _)| *number == source.line);
        at.for_each(|(_, line)| dim(out, "    ", &format!("| {}", line.trim())));
    }
    failure.messages.iter().for_each(|message| block(out, "    ", message, width));
    difference(out, failure);
    match layout.trace {
        true => frames::traffic(out, &failure.wire, width),
        false if failure.rule.is_some() => failure.wire.iter().for_each(|it| frames::brief(out, &it.line, width)),
        false => {}
    }
    if !failure.stderr.is_empty() && (layout.trace || failure.source.is_none()) {
        dim(out, "  ", "standard error");
        failure.stderr.iter().for_each(|line| block(out, "    ", line, width));
    }
    if let Some(rule) = &failure.rule {
        rule.help.iter().for_each(|help| block(out, "  ", &format!("help: {help}"), width));
        let name = if rule.link_name() == "Specification" { "spec" } else { "source" };
        dim(out, "  ", &format!("{name}: {}", rule.link));
    }
    failure.again.iter().take(AGAIN).for_each(|again| dim(out, "  ", &format!("again: {again}")));
    if let more @ 1.. = failure.again.len().saturating_sub(AGAIN) {
        dim(out, "  ", &format!("… and {more} more command lines, which a report as HTML has"));
    }
}

fn dim(out: &mut String, indent: &str, text: &str) {
    let _ = writeln!(out, "{indent}{}", styled(printable(text), DIM));
}

/// Where it failed: `in http/2025-11-25, ws/2025-11-25`.
fn places(failure: &Failure, is_named: bool) -> Option<String> {
    let count = failure.places.len();
    match (failure.is_everywhere, count) {
        (_, 0) | (true, 1) => return None,
        (true, _) => return Some(format!("in all {count} {}", failure.of)),
        (false, _) => {}
    }
    let named = failure
        .places
        .iter()
        .take(PLACES)
        .map(|it| it.rsplit_once(" in ").map_or((None, it.as_str()), |(name, place)| (Some(name), place)));
    let groups = grouped(named, |one, other| one == other);
    let is_named = is_named || groups.len() > 1;
    let group = |(name, places): &(Option<&str>, Vec<&str>)| match name {
        Some(name) if is_named => format!("{name} in {}", places.join(", ")),
        Some(_) => format!("in {}", places.join(", ")),
        None => places.join(", "),
    };
    let more = count.saturating_sub(PLACES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{}{more}", groups.iter().map(group).collect::<Vec<_>>().join("; ")))
}

fn difference(out: &mut String, Failure { difference, sides: [old, new], .. }: &Failure) {
    if difference.is_empty() {
        return;
    }
    let old = if old.is_empty() { String::new() } else { format!("{}  ", styled(format!("- {old}"), REMOVED)) };
    let _ = writeln!(out, "      {old}{}", styled(format!("+ {new}"), ADDED));
    for (sign, line) in difference {
        let line = match sign {
            '-' => styled(format!("- {line}"), REMOVED),
            '+' => styled(format!("+ {line}"), ADDED),
            '^' => styled(format!("  {line}"), ADDED),
            '…' => styled(format!("…{line}"), DIM),
            _ => styled(format!("  {line}"), DIM),
        };
        let _ = writeln!(out, "      {line}");
    }
}
