//! The process group of a command, and processes that have left it.
use std::{
    collections::BTreeSet, fs, io, os::unix::process::ExitStatusExt, path::PathBuf, process::ExitStatus, time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal as Number, WaitId, WaitIdOptions, getpgid, kill_process_group, waitid},
};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::scan::{self, TaggedProcess, read_into};
use crate::{
    Signal,
    process::{Pipes, ProcessChange, ReaperProcess, tag::ProcessTag},
};

/// How often to check which processes are left.
const PAUSE: Duration = Duration::from_millis(10);

/// The leader of a process group, and all processes that it has started. Dropping it kills them. The leader is not reaped
/// before the group has ended, so that no other process gets its id.
#[derive(Debug)]
pub struct ProcessGroup {
    pub(super) leader: Pid,
    process: Child,
    /// Without one, only the group itself is killed.
    pub(super) tag: Option<ProcessTag>,
    has_ended: bool,
}

impl ProcessGroup {
    /// Starts a command as the leader of a group; must be called within a tokio runtime. The reaper tracks it if one is
    /// installed.
    ///
    /// # Errors
    /// The command or the reaper cannot be started.
    pub fn start(mut command: Command) -> io::Result<ProcessGroup> {
        let tag = ProcessTag::new();
        let (name, value) = tag.variable();
        command.env(name, value);
        ReaperProcess::register(tag.to_string())?;
        let started = ProcessGroup::spawn(command, Some(tag.clone()));
        match &started {
            Ok(group) => ReaperProcess::assign(&tag, group.id()),
            Err(_) => ReaperProcess::unregister(tag.to_string()),
        }
        started
    }

    /// As [`ProcessGroup::start`], without a reaper, and with nothing in the environment: for a command that ends with its
    /// standard input. What leaves the group is not found.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start_untracked(command: Command) -> io::Result<ProcessGroup> {
        ProcessGroup::spawn(command, None)
    }

    /// As [`ProcessGroup::start`], for a command that uses the terminal of this process.
    ///
    /// # Errors
    /// As there.
    pub fn start_interactive(command: Command) -> io::Result<ProcessGroup> {
        ProcessGroup::start(command)
    }

    fn spawn(mut command: Command, tag: Option<ProcessTag>) -> io::Result<ProcessGroup> {
        let process = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let leader = leader.ok_or_else(|| io::Error::other("it has no process id"))?;
        Ok(ProcessGroup { leader, process, tag, has_ended: false })
    }

    /// The id of the leader, which is that of the group, too.
    pub fn id(&self) -> u32 {
        self.leader.as_raw_pid().cast_unsigned()
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// The piped streams of the leader, once.
    pub fn take_pipes(&mut self) -> Pipes {
        let process = &mut self.process;
        Pipes { stdin: process.stdin.take(), stdout: process.stdout.take(), stderr: process.stderr.take() }
    }

    /// Sends a signal to the group, as a terminal does; false if it is empty.
    pub fn signal(&self, signal: Signal) -> bool {
        self.send(signal.number())
    }

    fn send(&self, number: Number) -> bool {
        kill_process_group(self.leader, number).is_ok()
    }

    /// Asks all processes to end, including those outside the group: SIGTERM.
    pub async fn terminate(&self) {
        let mut processes = self.processes().await;
        processes.retain(|process| getpgid(Some(process.id)) != Ok(self.leader));
        self.send(Number::TERM);
        processes.iter().for_each(|process| process.signal(Number::TERM));
    }

    /// Whether other processes than the leader run, as far as the system shows.
    pub async fn has_others(&self) -> bool {
        has_others(self.leader) || self.processes().await.iter().any(|process| process.id != self.leader)
    }

    /// Waits until all processes have ended, as far as the system shows.
    pub async fn all_ended(&self) {
        self.leader_exit().await;
        while self.has_others().await {
            sleep(PAUSE).await;
        }
    }

    /// Kills all processes that are left, and waits for the leader, at most for `limit`. Returns how it ended.
    pub async fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        if !self.has_ended {
            let tags: BTreeSet<_> = self.tag.iter().cloned().collect();
            let killed = tags.is_empty() || spawn_blocking(move || scan::kill(&tags)).await.is_ok();
            // Also those without the tag.
            self.send(Number::KILL);
            // Otherwise the runtime is shutting down, and `drop` does it.
            if killed {
                self.mark_ended();
            }
        }
        timeout(limit, self.process.wait()).await.ok()?.ok()
    }

    fn mark_ended(&mut self) {
        self.has_ended = true;
        if let Some(tag) = &self.tag {
            ReaperProcess::unregister(tag.to_string());
        }
    }

    /// Blocks for milliseconds, so it runs on its own thread.
    async fn processes(&self) -> Vec<TaggedProcess> {
        let Some(tag) = self.tag.clone() else { return Vec::new() };
        spawn_blocking(move || scan::processes(&tag)).await.unwrap_or_default()
    }

    /// Waits until the leader has exited, and does not reap it. `None` if that cannot be known.
    pub async fn leader_exit(&self) -> Option<ExitStatus> {
        let mut changes = signal(SignalKind::child()).ok()?;
        loop {
            match self.leader_status() {
                Ok(None) => changes.recv().await?,
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
    }

    /// The next change of the leader. Cancel-safe.
    ///
    /// # Errors
    /// The system call fails.
    pub async fn change(&mut self) -> io::Result<ProcessChange> {
        // Before the first look, so that no change is missed.
        let mut changes = signal(SignalKind::child())?;
        loop {
            if let Some(status) = self.leader_status()? {
                return Ok(ProcessChange::Ended(status));
            }
            if let Some(number) = self.stop_signal()? {
                let uses_terminal = [Number::TTIN, Number::TTOU].contains(&number);
                return Ok(ProcessChange::Stopped { uses_terminal });
            }
            changes.recv().await.ok_or(io::ErrorKind::Interrupted)?;
        }
    }

    /// The signal that has stopped the leader since the last call.
    pub(super) fn stop_signal(&self) -> Result<Option<Number>, Errno> {
        match waitid(WaitId::Pid(self.leader), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG) {
            // A process that has just ended cannot stop: its end is the next change.
            Err(Errno::CHILD) => Ok(None),
            stop => Ok(stop?.and_then(|status| status.stopping_signal()).and_then(Number::from_named_raw)),
        }
    }

    /// How the leader ended, if it has.
    ///
    /// # Errors
    /// The system call fails.
    pub fn leader_status(&self) -> io::Result<Option<ExitStatus>> {
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
        if !self.has_ended {
            if let Some(tag) = &self.tag {
                scan::kill(&BTreeSet::from([tag.clone()]));
            }
            self.send(Number::KILL);
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
