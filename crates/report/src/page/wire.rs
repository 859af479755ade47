//! The traffic of a failure, with what violates marked.

use maud::{Markup, html};
use rehearse_protocol::Direction;

use crate::{
    TraceLine, WireKind, WireLine, last_lines,
    summary::{Failure, Rule},
    text::printable,
};

/// How many lines are shown; the last ones say most.
const LINES: usize = 60;
/// Texts up to this length stay on one line.
const SHORT: usize = 160;
/// A mark behind this many bytes is below the folded lines of a long text.
const CLIPPED: usize = 300;

pub(super) fn traffic(failure: &Failure, marks: &[String]) -> Markup {
    let Failure { wire: lines, example, rule, .. } = failure;
    let shown: Vec<_> = last_lines(lines, LINES).collect();
    let left_out = lines.len() - shown.len();
    let servers: std::collections::BTreeSet<_> = lines.iter().map(|line| &line.server).collect();
    html! {
        h4 { "Traffic" @if !example.is_empty() { " of " (printable(example)) } }
        @if left_out > 0 { p class="quiet" { (left_out) " earlier lines are left out" } }
        ol class="wire" {
            @for TraceLine { server, line } in shown {
                li class=(class(line)) {
                    span class="at" { (time(line)) }
                    span class="who" title=(sender(line)) { (line.sign()) @if servers.len() > 1 { " " (printable(server)) } }
                    (text(line, marks, rule.as_ref()))
                }
            }
        }
    }
}

/// In the precision of the JSON, so that a page made of it is the same.
fn time(line: &WireLine) -> String {
    format!("{:.1} ms", (line.at.as_secs_f64() * 1e6).round() / 1e3)
}

fn class(line: &WireLine) -> &'static str {
    match (line.kind, line.direction) {
        (WireKind::Stderr, _) => "stderr",
        (WireKind::Process, _) => "process",
        (_, Direction::ClientToServer) => "client",
        (_, Direction::ServerToClient) => "server",
    }
}

fn sender(line: &WireLine) -> &'static str {
    match line.direction {
        Direction::ClientToServer => "client to server",
        Direction::ServerToClient => "server to client",
    }
}

fn text(line: &WireLine, marks: &[String], rule: Option<&Rule>) -> Markup {
    let pretty = || {
        let value: serde_json::Value = serde_json::from_str(&line.text).ok()?;
        serde_json::to_string_pretty(&value).ok()
    };
    let cut = if line.is_cut() { format!("… ({} bytes)", line.length) } else { String::new() };
    html! {
        @if line.kind == WireKind::HttpHead { (head(line, marks, rule)) }
        @else if let Some(hex) = &line.hex {
            details { summary { (printable(&line.text)) } pre { (hex) } }
        } @else if line.text.len() <= SHORT {
            code { (marked(line, &line.text, marks)) (cut) }
        } @else {
            details open[find(&line.text, marks_of(line, marks)).is_some_and(|(before, _)| before.len() > CLIPPED)] {
                summary { code { (marked(line, &line.text, marks)) (cut) } }
                @if let Some(pretty) = pretty() { pre { @for part in pretty.lines() { (marked(line, part, marks)) "\n" } } }
            }
        }
    }
}

/// The first line of a head and the headers that matter, and below them the others.
fn head(line: &WireLine, marks: &[String], rule: Option<&Rule>) -> Markup {
    let mut parts = line.text.split("  ");
    let first = parts.next().unwrap_or_default();
    // A number stands in many headers.
    let texts: Vec<_> = marks.iter().filter(|mark| mark.parse::<i64>().is_err()).cloned().collect();
    let matters = |it: &&str| find(it, &texts).is_some() || rule.is_some_and(|rule| rule.is_about(it));
    let (shown, others): (Vec<_>, Vec<_>) = parts.partition(matters);
    html! {
        details class="head" {
            summary { code { (marked(line, first, marks)) } @for header in shown { br; code { (highlight(header, &texts)) } } }
            pre { @for header in others { (printable(header)) "\n" } }
        }
    }
}

/// A part of a line, with its mark.
fn marked(line: &WireLine, part: &str, marks: &[String]) -> Markup {
    highlight(part, marks_of(line, marks))
}

/// What is marked in a line.
fn marks_of<'a>(line: &'a WireLine, marks: &'a [String]) -> &'a [String] {
    match &line.mark {
        Some(mark) => std::slice::from_ref(mark),
        // A message quotes what the server said.
        None if line.direction == Direction::ServerToClient => marks,
        None => &[],
    }
}

/// The text, with the first of the marks that occurs in it.
fn highlight(text: &str, marks: &[String]) -> Markup {
    html! {
        @match find(text, marks) {
            Some((before, mark)) => {
                (printable(before)) mark { (printable(mark)) } (printable(&text[before.len() + mark.len()..]))
            }
            None => (printable(text)),
        }
    }
}

/// The first of the marks that occurs in the text, and what stands before it.
fn find<'a>(text: &'a str, marks: &'a [String]) -> Option<(&'a str, &'a str)> {
    let mut long = marks.iter().filter(|mark| mark.len() > 1);
    long.find_map(|mark| Some((text.split_once(mark.as_str())?.0, mark.as_str())))
}
