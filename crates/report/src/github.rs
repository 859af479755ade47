//! Workflow commands and outputs of GitHub Actions.

use std::fmt::Write;

use crate::{
    findings::github::{data, property},
    summary::{Failure, Outcome, Section, Summary},
    text::printable,
};

/// GitHub shows ten errors of a step. The last one says how many more there are.
const SHOWN: usize = 9;
/// The largest message in characters.
const MESSAGE: usize = 1000;

/// The worst failures as annotations. What a server said stands behind `::`, in one line, and is no command.
pub(crate) fn annotations(summary: &Summary) -> String {
    let failures = summary.sections.iter().flat_map(|section| section.failures.iter().map(move |it| (section, it)));
    let (bad, doubtful): (Vec<_>, Vec<_>) = failures.partition(|(_, failure)| failure.outcome.is_bad());
    let mut out = String::new();
    for (command, failures) in [("error", bad), ("warning", doubtful)] {
        failures.iter().take(SHOWN).for_each(|(section, failure)| annotation(&mut out, command, section, failure));
        if let more @ 1.. = failures.len().saturating_sub(SHOWN) {
            let _ = writeln!(out, "::{command} title=rehearse::and {more} more causes, which the report shows");
        }
    }
    out
}

fn annotation(out: &mut String, command: &str, section: &Section, failure: &Failure) {
    let place = match &failure.source {
        Some(source) => format!("file={},line={},", property(source.path.trim_start_matches("./")), source.line.max(1)),
        None => String::new(),
    };
    let places = match &failure.places[..] {
        [] => String::new(),
        [one] => format!(" ({one})"),
        [first, rest @ ..] => format!(" ({first} and {} more)", rest.len()),
    };
    let rule = failure.rule.as_ref().map(|rule| format!("{} ", rule.text)).unwrap_or_default();
    let message = format!("{rule}{}{places}", failure.messages.join("; "));
    let message: String = printable(&message).chars().take(MESSAGE).collect();
    let title = property(&printable(&format!("{}: {}", section.title, failure.title)));
    let _ = writeln!(out, "::{command} {place}title={title}::{}", data(&message));
}

/// The lines of `$GITHUB_OUTPUT`: the verdict and the counts.
pub(crate) fn outputs(summary: &Summary) -> String {
    let count = |outcomes: &[Outcome]| summary.count(|outcome| outcomes.contains(&outcome));
    format!(
        "verdict={}\npassed={}\nfailed={}\nincomplete={}\nskipped={}\n",
        summary.verdict.as_str(),
        count(&[Outcome::Passed, Outcome::Info, Outcome::Accepted, Outcome::Warning]),
        count(&[Outcome::Failed]),
        count(&[Outcome::Error, Outcome::NotRun, Outcome::NotTested]),
        count(&[Outcome::NotApplicable]),
    )
}
