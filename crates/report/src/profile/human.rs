//! The text report of profiles: a table, then what each one finds.

use std::fmt::Write;

use super::{Fit, ProfileFinding, ProfileFit, RuleLevel};
use crate::{
    Layout,
    groups::grouped,
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, styled},
    text::{printable, wrapped},
};

/// How many profiles are shown with their findings; of more, only the table is.
const MOST_IN_FULL: usize = 3;
/// How many items of a rule are named.
const NAMED: usize = 5;

pub(crate) fn render(out: &mut String, profiles: &[ProfileFit], layout: &Layout) {
    if profiles.is_empty() {
        return;
    }
    let name_width = profiles.iter().map(|it| it.profile.chars().count()).max().unwrap_or_default().max(7);
    let _ = writeln!(
        out,
        "\n{}",
        styled(format!("{:name_width$}  fit       blocks  degrades  advice  kept  untried", "profile"), DIM)
    );
    for profile in profiles {
        let (_, style) = sign(profile.fit);
        let [blocks, degrades, advice] = RuleLevel::ALL.map(|level| match profile.count(level) {
            0 => "–".to_owned(),
            count => count.to_string(),
        });
        let _ = writeln!(
            out,
            "{:name_width$}  {}  {blocks:>6}  {degrades:>8}  {advice:>6}  {:>4}  {:>7}",
            printable(&profile.profile),
            styled(format!("{:8}", profile.fit), style),
            profile.kept,
            profile.untried.len(),
        );
    }
    let has_findings = profiles.iter().any(|profile| !profile.findings.is_empty());
    if profiles.len() > MOST_IN_FULL && !layout.is_verbose {
        if has_findings {
            let _ = writeln!(out, "{}", styled("--verbose, or a profile by its name, shows what was found", DIM));
        }
        return;
    }
    for profile in profiles.iter().filter(|profile| !profile.findings.is_empty()) {
        let (sign, style) = sign(profile.fit);
        let _ =
            writeln!(out, "\n{} {}: {}", styled(sign, style), styled(printable(&profile.title), STRONG), profile.fit);
        let same = |one: &&ProfileFinding, other: &&ProfileFinding| one.rule == other.rule;
        for (first, all) in grouped(profile.findings.iter().map(|finding| (finding, finding)), same) {
            let shown = if layout.is_verbose { usize::MAX } else { NAMED };
            for finding in all.iter().take(shown) {
                let subject = finding.subject.as_ref().map(|it| format!("{}: ", printable(it))).unwrap_or_default();
                wrapped(out, &format!("{subject}{}", printable(&finding.message)), "  ", layout.width);
            }
            if let more @ 1.. = all.len().saturating_sub(shown) {
                let _ = writeln!(out, "  {}", styled(format!("and {more} more"), DIM));
            }
            wrapped(out, &printable(&first.effect), "    ", layout.width);
            let line = format!("{}   {}   seen {} in {}", first.level.as_str(), first.rule, first.seen, first.source);
            let _ = writeln!(out, "    {}", styled(printable(&line), DIM));
        }
    }
    if layout.is_verbose {
        for profile in profiles.iter().filter(|profile| !profile.untried.is_empty()) {
            let _ = writeln!(out, "\n{}: rules that were not tried", printable(&profile.title));
            for rule in &profile.untried {
                wrapped(out, &format!("{}: {}", rule.rule, rule.reason), "  ", layout.width);
            }
        }
    }
}

const fn sign(fit: Fit) -> (&'static str, anstyle::Style) {
    match fit {
        Fit::Works => ("✓", GOOD),
        Fit::Degraded => ("!", DOUBTFUL),
        Fit::Blocked => ("✗", BAD),
    }
}
