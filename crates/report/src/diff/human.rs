//! The text report: the changes by their class, worst last, where a terminal shows it; then the verdict.

use std::fmt::Write;

use rehearse_document::text::shortened;

use super::{Change, Class, DiffResult, RefusedCall, Side};
use crate::{
    Layout, Verdict,
    groups::grouped,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    text::{printable, wrapped},
};

/// How many changes of a rule are shown.
const NAMED: usize = 12;
/// How much of a value is shown.
const LONGEST: usize = 200;

pub(crate) fn render(result: &DiffResult, layout: &Layout) -> String {
    let width = layout.width;
    let mut out = String::new();
    let _ = writeln!(out, "{} → {}\n", side(&result.old), side(&result.new));
    for class in Class::ALL.into_iter().rev() {
        let of_class: Vec<_> = result.changes.iter().filter(|change| change.class == class).collect();
        let (accepted, open): (Vec<_>, Vec<_>) = of_class.into_iter().partition(|change| change.accepted.is_some());
        if class == Class::Cosmetic && !layout.is_verbose {
            continue;
        }
        let shown = if layout.is_verbose { usize::MAX } else { NAMED };
        for (_, of_rule) in grouped(open.into_iter().map(|change| (&change.rule, change)), |one, other| one == other) {
            of_rule.iter().take(shown).for_each(|change| self::change(&mut out, change, width));
            if let more @ 1.. = of_rule.len().saturating_sub(shown) {
                let text = format!("  and {more} more of {}, which --verbose shows", of_rule[0].rule);
                let _ = writeln!(out, "{}", styled(text, DIM));
            }
        }
        if layout.is_verbose {
            accepted.iter().for_each(|change| self::change(&mut out, change, width));
        }
    }
    result.refused_calls.iter().for_each(|call| refused(&mut out, call, width));
    conclusion(&mut out, result, width);
    out
}

fn side(side: &Side) -> String {
    let server = side.server.as_ref().map(|server| format!(" ({})", printable(server))).unwrap_or_default();
    format!("{}{server}", styled(printable(&side.name), STRONG))
}

/// A sign, the subject and the sentence; then the rule, and a value that shows it.
fn change(out: &mut String, change: &Change, width: usize) {
    let (sign, style) = match change.class {
        Class::Breaking if change.is_possible => ("?", DOUBTFUL),
        Class::Breaking => ("✗", BAD),
        Class::Behaviour => ("!", DOUBTFUL),
        Class::Addition => ("+", GOOD),
        Class::Cosmetic => ("·", DIM),
    };
    let text = format!("{} {}: {}", styled(sign, style), printable(&change.subject), printable(&change.message));
    wrapped(out, &text, "", width);
    let class = if change.is_possible { "possibly breaking" } else { change.class.as_str() };
    let place = change.place.as_ref().map(|place| format!("   {}:{}", printable(&place.file), place.line));
    let line = format!("  {class}   {}{}", change.rule, place.unwrap_or_default());
    let _ = writeln!(out, "{}", styled(line, DIM));
    if let Some(instance) = &change.instance {
        let value = shortened(&instance.to_string(), LONGEST);
        wrapped(out, &format!("for example {}", printable(&value)), "    ", width);
    }
    if let Some(reason) = &change.accepted {
        wrapped(out, &format!("accepted: {}", printable(reason)), "    ", width);
    }
}

fn refused(out: &mut String, call: &RefusedCall, width: usize) {
    let client = call.client.as_ref().map(|client| format!(" by {}", printable(client))).unwrap_or_default();
    let times = if call.count == 1 { "1 recorded call".to_owned() } else { format!("{} recorded calls", call.count) };
    let text =
        format!("{} {}: {times}{client} would fail: {}.", styled("✗", BAD), call.subject, printable(&call.reason));
    wrapped(out, &text, "", width);
    let value = shortened(&call.arguments.to_string(), LONGEST);
    wrapped(out, &format!("in {}: {}", printable(&call.trace), printable(&value)), "    ", width);
}

fn conclusion(out: &mut String, result: &DiffResult, width: usize) {
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
    for entry in &result.stale {
        wrapped(out, &format!("{} accepted in the baseline, but no change: {entry}", styled("✗", BAD)), "", width);
    }
    let (sign, style) = if result.verdict == Verdict::Passed { ("✓", GOOD) } else { ("✗", BAD) };
    let text = format!("{} {}", styled(sign, style), styled(counts(result), STRONG));
    wrapped(out, &text, "", width);
    if let Some(advice) = &result.advice {
        wrapped(out, advice, "  ", width);
    }
}

/// How many changes there are of each class.
pub(crate) fn counts(result: &DiffResult) -> String {
    let words = |class: Class| match (class, result.count(class)) {
        (_, 0) => None,
        (Class::Addition, count @ 2..) => Some(format!("{count} additions")),
        (class, count) => Some(format!("{count} {class}")),
    };
    let mut parts: Vec<_> = Class::ALL.into_iter().filter_map(words).collect();
    let possible = result.changes.iter().filter(|change| change.is_possible && change.accepted.is_none()).count();
    if let Some(first) = parts.first_mut().filter(|_| possible > 0) {
        first.push_str(&format!(" ({possible} possibly)"));
    }
    let accepted = result.changes.iter().filter(|change| change.accepted.is_some()).count();
    parts.extend((accepted > 0).then(|| format!("{accepted} accepted")));
    let changes = if parts.is_empty() { "no changes".to_owned() } else { format!("changes: {}", parts.join(", ")) };
    let refused: usize = result.refused_calls.iter().map(|call| call.count).sum();
    match result.calls {
        Some(calls) => format!("{changes}; {refused} of {calls} recorded calls would fail"),
        None => changes,
    }
}
