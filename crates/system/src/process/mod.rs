//! Child processes, with all processes that they start.
//!
//! On Unix, a child leads a process group, and has a tag in its environment by which those are found that leave the group.
//! A second process, the [`ReaperProcess`], kills what a killed process leaves. On Windows, a child is in a Job Object, which
//! the system ends when the last handle to it is closed, however that happens.

mod reaper;
mod tag;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::{process::ExitStatus, time::Duration};

use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use reaper::ReaperProcess;
pub use system::{ProcessGroup, exit_signal, interrupt_self, is_alive, kill_self};
pub use tag::is_started_by_client;

/// The piped streams of a process.
#[derive(Debug, Default)]
pub struct Pipes {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

/// A change of the state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessChange {
    /// It was stopped, and can be continued. `uses_terminal` says that it did so from the background. Never on Windows.
    Stopped { uses_terminal: bool },
    /// It has ended with this status.
    Ended(ExitStatus),
}

impl ProcessGroup {
    /// Ends the processes that are left: asks them to end, and kills them after `grace`. Those that cannot be found before
    /// are killed at once. Returns how the leader ended.
    pub async fn finish(mut self, grace: Duration) -> Option<ExitStatus> {
        if self.has_others().await {
            self.terminate().await;
            let _ = timeout(grace, self.all_ended()).await;
        }
        self.end(Duration::MAX).await
    }
}
