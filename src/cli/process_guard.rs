//! Commands that start processes: whatever becomes of this one, none of theirs is left.

use std::{path::PathBuf, process::Command};

use super::Failure;
use crate::client::ReaperProcess;

/// The guard of this process is to be this program itself, whose path is returned.
///
/// # Errors
/// The path of this program is not known.
pub(super) fn install_guard() -> Result<PathBuf, Failure> {
    let rehearse = std::env::current_exe()
        .map_err(|error| Failure::cannot(format!("cannot find the path of this program: {error}")))?;
    let mut guard = Command::new(&rehearse);
    guard.arg("guard");
    ReaperProcess::install(guard);
    Ok(rehearse)
}

/// Does what starts servers.
///
/// # Errors
/// What the work gives; this machine does not let us start anything.
pub(super) fn block_on_guarded<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    install_guard()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::cannot(format!("cannot start the async runtime: {error}")))?;
    let done = runtime.block_on(Box::pin(work));
    drop(runtime);
    ReaperProcess::dismiss();
    done
}
