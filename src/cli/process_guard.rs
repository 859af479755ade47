//! The guard that kills server processes if this process is killed.

use std::{path::PathBuf, process::Command, time::Duration};

use futures_util::future::LocalBoxFuture;

use tokio::runtime::{Builder, Runtime};

use super::Failure;
use rehearse_system::process::ReaperProcess;

/// How long threads may take to end, such as one that writes a file.
const THREAD_TIMEOUT: Duration = Duration::from_secs(1);

/// The path of this program.
///
/// # Errors
/// It is not known.
pub(super) fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::cannot(format!("cannot find the path of this program: {error}")))
}

/// Installs this program as the guard of its processes, and returns its path.
///
/// # Errors
/// The path of this program is not known.
pub(super) fn install_guard() -> Result<PathBuf, Failure> {
    let rehearse = program()?;
    let mut guard = Command::new(&rehearse);
    guard.arg("guard");
    ReaperProcess::install(guard);
    Ok(rehearse)
}

/// # Errors
/// It cannot start.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::cannot(format!("cannot start the async runtime: {error}")))
}

/// Runs work that starts servers, in a tokio runtime with the guard.
///
/// # Errors
/// The error of the work; or the guard or the runtime cannot start.
pub(super) fn block_on_guarded<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    block_on(Box::pin(work))
}

/// Compiled once, not for each future.
fn block_on<T>(work: LocalBoxFuture<'_, Result<T, Failure>>) -> Result<T, Failure> {
    install_guard()?;
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    // A thread that reads a terminal never returns.
    runtime.shutdown_timeout(THREAD_TIMEOUT);
    ReaperProcess::dismiss();
    done
}
