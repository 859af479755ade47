//! The text report: a line for each target, then each bug with its smallest input.

use std::fmt::Write;

use rehearse_document::text::shortened;

use super::{FuzzBug, FuzzResult, FuzzTarget, TargetKind};
use crate::{
    Layout, Verdict,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    text::{printable, wrapped},
};

/// How much of an input is shown.
const LONGEST: usize = 200;
/// How much of the name of a target is shown.
const LONGEST_NAME: usize = 48;

pub(crate) fn render(result: &FuzzResult, layout: &Layout) -> String {
    let mut out = String::new();
    let server = result.server.as_deref().unwrap_or("server");
    let _ =
        writeln!(out, "{}   {}   {}\n", styled(printable(server), STRONG), printable(&result.target), result.protocol);
    let names = result.targets.iter().map(|it| shown(&it.target).chars().count());
    let name_width = names.max().unwrap_or_default().max(6);
    let _ = writeln!(out, "{}", styled(format!("{:name_width$}  inputs  accepted  refused  bugs", "target"), DIM));
    for target in &result.targets {
        let bugs = result.bugs.iter().filter(|bug| bug.target == target.target).count();
        let (sign, style) = match (bugs, &target.reason) {
            (1.., _) => ("✗", BAD),
            (_, Some(_)) => ("·", DOUBTFUL),
            _ => ("✓", GOOD),
        };
        let _ = writeln!(
            out,
            "{:name_width$}  {:>6}  {:>8}  {:>7}  {bugs:>4} {}",
            shown(&target.target),
            target.cases,
            target.accepted,
            target.refused,
            styled(sign, style)
        );
        if let Some(reason) = &target.reason {
            wrapped(
                &mut out,
                &format!(
                    "{}: {}",
                    if target.accepted == 0 { "not tested" } else { "not tried to the end" },
                    printable(reason)
                ),
                "  ",
                layout.width,
            );
        }
    }
    result.bugs.iter().for_each(|bug| self::bug(&mut out, result, bug, layout.width));
    conclusion(&mut out, result);
    out
}

fn bug(out: &mut String, result: &FuzzResult, bug: &FuzzBug, width: usize) {
    let (sign, style) = if result.fails(bug) { ("✗", BAD) } else { ("!", DOUBTFUL) };
    let _ = writeln!(
        out,
        "\n{} {} {}",
        styled(sign, style),
        styled(bug.oracle, STRONG),
        printable(&bug.target.to_string())
    );
    // The last lines of a process are in it.
    let message = bug.message.split_whitespace().collect::<Vec<_>>().join(" ");
    wrapped(out, &printable(&message), "  ", width);
    wrapped(out, &printable(&shortened(&bug.input(), LONGEST)), "  ", width);
    let validity = match (bug.target.kind, bug.is_valid) {
        (TargetKind::Tool, Some(true)) => "the schema accepts this input",
        (TargetKind::Tool, Some(false)) => "the schema refuses this input",
        (TargetKind::Tool, None) => "the schema cannot be read",
        (_, Some(false)) => "this input is not what the server declares",
        _ => return,
    };
    let _ = writeln!(out, "  {}", styled(validity, DIM));
}

fn shown(target: &FuzzTarget) -> String {
    printable(&shortened(&target.to_string(), LONGEST_NAME)).into_owned()
}

fn conclusion(out: &mut String, result: &FuzzResult) {
    if let Some(error) = &result.error {
        let _ = writeln!(out, "\n{} {}", styled("!", DOUBTFUL), printable(error));
    }
    let (word, style) = match result.verdict {
        Verdict::Passed if result.bugs.is_empty() => ("no bug was found", GOOD),
        Verdict::Passed => ("passed, with warnings", DOUBTFUL),
        Verdict::Failed => ("failed", BAD),
        Verdict::NothingTested => ("nothing was tested", DOUBTFUL),
        Verdict::Incomplete | Verdict::CannotRun => ("not everything was tried", DOUBTFUL),
    };
    let seconds = result.duration.as_secs_f64();
    let rate = if seconds > 0.0 { result.cases as f64 / seconds } else { 0.0 };
    let bugs = if result.bugs.len() == 1 { "1 bug".to_owned() } else { format!("{} bugs", result.bugs.len()) };
    let _ = writeln!(
        out,
        "\n{}   {bugs}, {} inputs, {rate:.0} a second   {seconds:.1} s, seed {}",
        styled(word, style),
        result.cases,
        result.seed
    );
}
