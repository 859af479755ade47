//! A picture of a page, made by the user's own Chromium.

use std::{
    path::{Path, absolute},
    process::Stdio,
    time::Duration,
};

use rehearse_system::{TempFolder, program};
use tokio::process::Command;

use crate::cli::Failure;

/// The variable with the program, and arguments if it needs any.
const VARIABLE: &str = "REHEARSE_CHROMIUM";
/// How long the program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// What it prints on standard error is shown up to here.
const MAX_ERROR: usize = 500;

/// The command line of the program.
///
/// # Errors
/// The user has named none.
pub(super) fn chromium() -> Result<Vec<String>, Failure> {
    let command = std::env::var(VARIABLE).unwrap_or_default();
    let words = match Path::new(&command).is_file() {
        true => vec![command],
        false => program::words(&command).map_err(Failure::Usage)?,
    };
    match words.is_empty() {
        true => Err(Failure::Usage(format!("--screenshot needs Chromium or Chrome; set {VARIABLE} to its path"))),
        false => Ok(words),
    }
}

/// Saves a picture of a page, when it has had five seconds of its own time.
///
/// # Errors
/// The program cannot be run, or makes no picture.
pub(super) async fn save(chromium: &[String], url: &str, file: &Path) -> Result<(), Failure> {
    let Some((program, arguments)) = chromium.split_first() else { return Ok(()) };
    let failed = |why: String| Failure::cannot(format!("cannot make a picture with {program}: {why}"));
    let profile = TempFolder::create(&std::env::temp_dir()).map_err(|error| failed(error.to_string()))?;
    let file = absolute(file).map_err(|error| failed(error.to_string()))?;
    let mut command: Command = program::command(program, None).into();
    command
        .args(arguments)
        .args(["--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--window-size=800,600"])
        .arg("--virtual-time-budget=5000")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--screenshot={}", file.display()))
        .arg(url)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::time::timeout(LIMIT, command.output()).await;
    let output = ended.map_err(|_| failed(format!("it has not ended after {LIMIT:?}")))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() && file.is_file() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.trim().chars().take(MAX_ERROR).collect();
    Err(failed(format!("{} {said}", output.status)))
}
