//! A command on the standard streams of this process, in a process group of its own.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, waitid},
};
use tokio::{
    signal::unix::{Signal as SignalStream, SignalKind, signal},
    time::timeout,
};

use super::process_group::ProcessGroup;

/// A running command with all processes that it has started. Dropping it kills them.
#[derive(Debug)]
pub struct ProcessHandle {
    process: Child,
    group: ProcessGroup,
    changes: SignalStream,
}

/// A change of the state of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessChange {
    /// It was stopped by this signal, and can be continued.
    Stopped(Signal),
    /// It has ended with this status.
    Ended(ExitStatus),
}

impl ProcessHandle {
    /// Starts the command, and the reaper if one is installed; must be called within a tokio runtime.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(mut command: Command) -> io::Result<ProcessHandle> {
        let changes = signal(SignalKind::child())?;
        let (process, group) = ProcessGroup::start(|(name, value)| {
            let process = command.process_group(0).env(name, value).spawn()?;
            let leader = Pid::from_child(&process);
            Ok((process, leader))
        })?;
        Ok(ProcessHandle { process, group, changes })
    }

    /// The id of its process group.
    pub fn group(&self) -> Pid {
        self.group.leader
    }

    /// Sends a signal to all processes in its group.
    pub fn signal(&self, signal: Signal) {
        // An error means that they have ended.
        self.group.signal(signal);
    }

    /// The next change of the command itself. Cancel-safe.
    ///
    /// # Errors
    /// The system call fails.
    pub async fn change(&mut self) -> io::Result<ProcessChange> {
        loop {
            if let Some(status) = self.group.leader_status()? {
                return Ok(ProcessChange::Ended(status));
            }
            if let Some(signal) = self.stop_signal()? {
                return Ok(ProcessChange::Stopped(signal));
            }
            self.changes.recv().await.ok_or(io::ErrorKind::Interrupted)?;
        }
    }

    /// The signal that has stopped the command since the last call.
    fn stop_signal(&self) -> Result<Option<Signal>, Errno> {
        match waitid(WaitId::Pid(self.group.leader), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG) {
            // A process that has just ended cannot stop: its end is the next change.
            Err(Errno::CHILD) => Ok(None),
            stop => Ok(stop?.and_then(|status| status.stopping_signal()).and_then(Signal::from_named_raw)),
        }
    }

    /// Ends the processes that the command has left: sends SIGTERM, and kills them after `grace`. On systems without
    /// `/proc` they are killed at once.
    pub async fn finish(mut self, grace: Duration) {
        if self.group.has_others().await {
            self.group.terminate().await;
            let _ = timeout(grace, self.group.all_ended()).await;
        }
        self.group.end().await;
        // The leader has ended, or was killed just now.
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::{super::process_group::has_others, *};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> ProcessHandle {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ProcessHandle::start(command).expect("starts")
    }

    async fn change(process: &mut ProcessHandle) -> ProcessChange {
        tokio::time::timeout(PATIENCE, process.change()).await.expect("in time").expect("a child of ours")
    }

    #[tokio::test]
    async fn a_command_can_be_stopped_and_continued_and_ends_with_its_code() {
        let mut process = shell("kill -STOP $$; exit 7");
        assert_eq!(change(&mut process).await, ProcessChange::Stopped(Signal::STOP));
        process.signal(Signal::CONT);
        let ProcessChange::Ended(status) = change(&mut process).await else { panic!("it was continued") };
        assert_eq!(status.code(), Some(7));
        process.finish(PATIENCE).await;
    }

    #[tokio::test]
    async fn a_command_that_ends_during_the_check_was_not_stopped() {
        let mut process = shell("exit 0");
        assert!(matches!(change(&mut process).await, ProcessChange::Ended(_)));
        assert_eq!(process.stop_signal(), Ok(None));
        process.finish(PATIENCE).await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn remaining_processes_of_a_command_get_sigterm_and_then_sigkill() {
        let deaf = "sh -c \"trap '' TERM; sleep 4332; sleep 4333\"";
        for (left, grace) in [
            ("sleep 4331", PATIENCE),
            ("setsid sleep 4331", PATIENCE),
            ("env -i sleep 4331", PATIENCE),
            (deaf, Duration::ZERO),
            (&format!("setsid {deaf}"), Duration::ZERO),
        ] {
            let mut process = shell(&format!("{left} & exit 0"));
            let (tag, group) = (process.group.tag().clone(), process.group());
            assert!(matches!(change(&mut process).await, ProcessChange::Ended(status) if status.success()));
            assert!(process.group.has_others().await, "{left}");
            process.finish(grace).await;
            let deadline = Instant::now() + PATIENCE;
            while has_others(group) || !tag.processes().is_empty() {
                assert!(Instant::now() < deadline, "{left} is gone");
                tokio::task::yield_now().await;
            }
        }
    }
}
