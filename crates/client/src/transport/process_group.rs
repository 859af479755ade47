//! The process group of a command, and processes that have left it.

use std::{
    collections::BTreeSet, fs, io, os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus, time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, getpgid, kill_process_group, waitid},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
    time::sleep,
};

use super::{
    ReaperProcess,
    process_tag::{self, ProcessTag, TaggedProcess, read_into},
};

/// How often to check which processes are left.
const PAUSE: Duration = Duration::from_millis(10);

/// The process group of a child process, and all processes that it has started elsewhere. The child is not reaped
/// before the group has ended, so that no other process gets its id.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    pub(super) leader: Pid,
    tag: ProcessTag,
    ended: bool,
}

impl ProcessGroup {
    /// Starts a leader that the reaper tracks. `spawn` gets a variable for its environment.
    ///
    /// # Errors
    /// Those of `spawn`, or the reaper cannot be started.
    pub(super) fn start<T>(spawn: impl FnOnce((&str, &str)) -> io::Result<(T, Pid)>) -> io::Result<(T, ProcessGroup)> {
        let tag = ProcessTag::new();
        let (started, leader) = ReaperProcess::track(&tag, || spawn(tag.variable()))?;
        Ok((started, ProcessGroup { leader, tag, ended: false }))
    }

    #[cfg(test)]
    pub(super) fn tag(&self) -> &ProcessTag {
        &self.tag
    }

    /// Sends a signal to the group, as a terminal does; false if it is empty.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        kill_process_group(self.leader, signal).is_ok()
    }

    /// Sends SIGTERM to all processes, including those outside the group.
    pub(super) async fn terminate(&self) {
        let mut processes = self.processes().await;
        processes.retain(|process| getpgid(Some(process.id)) != Ok(self.leader));
        self.signal(Signal::TERM);
        processes.iter().for_each(|process| process.signal(Signal::TERM));
    }

    /// Whether other processes than the leader run, as far as the system shows.
    pub(super) async fn has_others(&self) -> bool {
        has_others(self.leader) || self.processes().await.iter().any(|process| process.id != self.leader)
    }

    /// Waits until all processes have ended, as far as the system shows.
    pub(super) async fn all_ended(&self) {
        self.leader_exit().await;
        while self.has_others().await {
            sleep(PAUSE).await;
        }
    }

    /// Kills all processes that are left.
    pub(super) async fn end(&mut self) {
        if !self.ended {
            let tags = BTreeSet::from([self.tag.clone()]);
            let killed = spawn_blocking(move || process_tag::kill(&tags)).await;
            // Also those without the tag.
            self.signal(Signal::KILL);
            // Otherwise the runtime is shutting down, and `drop` does it.
            if killed.is_ok() {
                self.mark_ended();
            }
        }
    }

    fn mark_ended(&mut self) {
        self.ended = true;
        ReaperProcess::unregister(self.tag.to_string());
    }

    /// Blocks for milliseconds, so it runs on its own thread.
    async fn processes(&self) -> Vec<TaggedProcess> {
        let tag = self.tag.clone();
        spawn_blocking(move || tag.processes()).await.unwrap_or_default()
    }

    /// Waits until the leader has exited, and does not reap it. `None` if that cannot be known.
    pub(super) async fn leader_exit(&self) -> Option<ExitStatus> {
        let mut changes = signal(SignalKind::child()).ok()?;
        loop {
            match self.leader_status() {
                Ok(None) => changes.recv().await?,
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// How the leader ended, if it has.
    pub(super) fn leader_status(&self) -> Result<Option<ExitStatus>, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let ended = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(self.leader), options))?;
        // The encoding of wait(2).
        let code = |code: i32| ExitStatus::from_raw((code & 0xff) << 8);
        Ok(ended
            .and_then(|ended| ended.exit_status().map(code).or(ended.terminating_signal().map(ExitStatus::from_raw))))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.ended {
            process_tag::kill(&BTreeSet::from([self.tag.clone()]));
            self.signal(Signal::KILL);
            self.mark_ended();
        }
    }
}

/// Whether a group has processes that run besides its leader.
pub(super) fn has_others(group: Pid) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut stat = Vec::new();
    let mut runs_in_group = |path: PathBuf| {
        if read_into(&path.join("stat"), &mut stat).is_err() {
            return false;
        }
        // The name before it may contain anything.
        let text = String::from_utf8_lossy(&stat);
        let mut fields = text.rsplit(") ").next().unwrap_or_default().split_whitespace();
        let state = fields.next();
        state != Some("Z") && fields.nth(1).and_then(|id| id.parse().ok()) == Some(group.as_raw_pid())
    };
    processes
        .filter(|process| process.file_name() != group.as_raw_pid().to_string().as_str())
        .any(|process| runs_in_group(process.path()))
}
