//! The file of accepted failures: read, applied and written.

use std::{path::Path, time::SystemTime};

use crate::cli::{Failure, output};
use rehearse_check::selects;
use rehearse_conformance::checks;
use rehearse_document::{Source, parse_yaml};
use rehearse_report::check::{CheckResult, baseline::Baseline};

/// Reads the file. If it is to be written, it need not exist.
///
/// # Errors
/// It cannot be read, or has mistakes; or it is to be written, and is that of the official suite.
pub(super) fn read(path: &Path, is_written: bool) -> Result<Baseline, Failure> {
    if is_written && !path.exists() {
        return Ok(Baseline::default());
    }
    let source =
        Source::read(path).map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    let read = parse_yaml(&source).and_then(|node| Baseline::read(&node, &ids));
    let baseline = read.map_err(|problems| Failure::Invalid(problems.in_source(&source)))?;
    if is_written && baseline.is_official() {
        let message =
            format!("{} is a file of the official suite; --update-baseline needs another one", path.display());
        return Err(Failure::Usage(message));
    }
    Ok(baseline)
}

/// The ids of the checks that a pattern selects.
fn ids(pattern: &str) -> Vec<String> {
    checks().iter().filter(|check| selects(pattern, &check.id)).map(|check| check.id.clone()).collect()
}

/// Accepts what the file accepts, and writes it with the rest if `is_written`.
///
/// # Errors
/// The file cannot be written.
pub(super) fn apply(
    baseline: &Baseline,
    result: &mut CheckResult,
    path: &Path,
    is_whole: bool,
    is_written: bool,
) -> Result<(), Failure> {
    let today = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let today = today.get(..10).unwrap_or_default();
    let mut kept = baseline.apply(result, path.to_owned(), today, is_whole);
    if !is_written {
        return Ok(());
    }
    kept.extend(result);
    output::write_file(path, kept.to_yaml().as_bytes())?;
    // The run is judged by what the file says now.
    let source = Source::new("", kept.to_yaml());
    if let Ok(written) = parse_yaml(&source).and_then(|node| Baseline::read(&node, &ids)) {
        written.apply(result, path.to_owned(), today, is_whole);
    }
    Ok(())
}
