//! Advice for the next version number (Semantic Versioning 2.0.0, 4 and 8).

use crate::Surface;
use rehearse_report::diff::{Change, Class};

/// What the changes that are not accepted demand of the version number: of the new one, if the server has one already.
/// `None` if a patch is enough.
pub(crate) fn advice(old: &Surface, new: &Surface, changes: &[Change]) -> Option<String> {
    let count = |class| changes.iter().filter(|change| change.class == class && change.accepted.is_none()).count();
    let (breaking, additions) = (count(Class::Breaking), count(Class::Addition) + count(Class::Behaviour));
    let (what, why) = match (breaking, additions) {
        (0, 0) => return None,
        (0, _) => ("minor", "no breaking change, and some of other kinds".to_owned()),
        (1, _) => ("major", "1 breaking change".to_owned()),
        (breaking, _) => ("major", format!("{breaking} breaking changes")),
    };
    let (before, after) = (version(old), version(new));
    let Some((before, written)) = before else { return Some(format!("By SemVer this is a {what} version: {why}.")) };
    let [major, minor, _] = before;
    let least = match (what, before) {
        // Below 1.0.0 the second number stands for the first one.
        ("major", [0, ..]) => [0, minor + 1, 0],
        ("major", _) => [major + 1, 0, 0],
        ("minor", [0, ..]) => [0, minor, before[2] + 1],
        _ => [major, minor + 1, 0],
    };
    let wanted = least.map(|part| part.to_string()).join(".");
    Some(match after {
        Some((after, _)) if after >= least => return None,
        Some((after, text)) if after != before => {
            format!(
                "By SemVer the version after {written} must be at least {wanted}, and the server says {text}: {why}."
            )
        }
        _ => format!("By SemVer the version after {written} is {wanted}: {why}."),
    })
}

/// The version of a server, if it has three numbers.
fn version(surface: &Surface) -> Option<([u64; 3], &str)> {
    let text = surface.server.as_ref()?.get("version")?.as_str()?;
    let numbers = text.trim_start_matches('v').split(['-', '+']).next()?;
    let parts: Vec<u64> = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    Some((parts.try_into().ok()?, text))
}
