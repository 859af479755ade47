//! Workflow commands and outputs of GitHub Actions.

use std::fmt::Write;

use crate::{
    summary::{Failure, Outcome, Place, Section, Summary},
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
    for (outcome, failures) in [(Outcome::Failed, bad), (Outcome::Warning, doubtful)] {
        out.extend(failures.iter().take(SHOWN).map(|(section, failure)| annotation(outcome, section, failure)));
        if let more @ 1.. = failures.len().saturating_sub(SHOWN) {
            let message = format!("and {more} more causes, which the report shows");
            out.push_str(&command(outcome, None, "rehearse", &message));
        }
    }
    out
}

fn annotation(outcome: Outcome, section: &Section, failure: &Failure) -> String {
    let source = failure.source.as_ref();
    let place = source.map(|it| Place { file: it.path.clone(), line: it.line.max(1), ..Place::default() });
    let places = match &failure.places[..] {
        [] => String::new(),
        [one] => format!(" ({one})"),
        [first, rest @ ..] => format!(" ({first} and {} more)", rest.len()),
    };
    let rule = failure.rule.as_ref().map(|rule| format!("{} ", rule.text)).unwrap_or_default();
    let message = format!("{rule}{}{places}", failure.messages.join("; "));
    let message: String = printable(&message).chars().take(MESSAGE).collect();
    command(outcome, place.as_ref(), &printable(&format!("{}: {}", section.title, failure.title)), &message)
}

/// A line that GitHub shows beside the lines of a pull request (GitHub Actions, Workflow commands).
pub(crate) fn command(outcome: Outcome, place: Option<&Place>, title: &str, message: &str) -> String {
    let mut properties = String::new();
    if let Some(Place { file, line, column, end }) = place {
        let _ = write!(properties, "file={},line={line},", property(file.trim_start_matches("./")));
        properties.extend(column.map(|column| format!("col={column},")));
        properties.extend(end.map(|(end_line, end_column)| match end_line == *line {
            // GitHub accepts an end column only on the same line.
            true => format!("endColumn={end_column},"),
            false => format!("endLine={end_line},"),
        }));
    }
    let command = match outcome {
        Outcome::Warning => "warning",
        Outcome::Info => "notice",
        _ => "error",
    };
    format!("::{command} {properties}title={}::{}\n", property(title), data(message))
}

/// The message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
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
