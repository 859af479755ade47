//! A Job Object for each child. The system kills its processes when the last handle to it is closed, so that also
//! a killed process leaves nothing behind.

use std::{
    io,
    os::windows::process::ExitStatusExt,
    process::ExitStatus,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::own::{KILLED, NO_WINDOW};
use crate::{
    Signal,
    process::{Pipes, ProcessChange, tag::ProcessTag},
};
use process_wrap::tokio::{CommandWrap, CommandWrapper, JobObject};
use tokio::{
    process::{Child, Command},
    sync::watch,
    time::{sleep, timeout},
};
use win32job::{ExtendedLimitInfo, Job};
use winsafe::{HPROCESSLIST, co};

/// How often to check which processes are left.
const PAUSE: Duration = Duration::from_millis(10);
/// `CREATE_SUSPENDED`: it runs when it is in its job.
const SUSPENDED: u32 = 0x0000_0004;

/// A child process and all processes that it has started. Dropping it kills them.
#[derive(Debug)]
pub struct ProcessGroup {
    id: u32,
    pipes: Pipes,
    /// `None` when it was killed.
    job: Mutex<Option<Arc<Job>>>,
    was_killed: Arc<AtomicBool>,
    exit: watch::Receiver<Option<ExitStatus>>,
}

impl ProcessGroup {
    /// Starts a command in a job; must be called within a tokio runtime.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(command: Command) -> io::Result<ProcessGroup> {
        ProcessGroup::spawn(tagged(command), NO_WINDOW)
    }

    /// As [`ProcessGroup::start`], with nothing in the environment.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start_untracked(command: Command) -> io::Result<ProcessGroup> {
        ProcessGroup::spawn(command, NO_WINDOW)
    }

    /// As [`ProcessGroup::start`], for a command that uses the terminal of this process.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start_interactive(command: Command) -> io::Result<ProcessGroup> {
        ProcessGroup::spawn(tagged(command), 0)
    }

    fn spawn(command: Command, flags: u32) -> io::Result<ProcessGroup> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Arc::new(Job::create_with_limit_info(&limits).map_err(io::Error::other)?);
        let mut command = CommandWrap::from(command);
        // The first one resumes the process, after all have seen it.
        command.wrap(JobObject).wrap(Assignment { job: job.clone(), flags });
        let mut process = command.spawn()?;
        let id = process.id().ok_or_else(|| io::Error::other("it has no process id"))?;
        let pipes =
            Pipes { stdin: process.stdin().take(), stdout: process.stdout().take(), stderr: process.stderr().take() };
        let (sender, exit) = watch::channel(None);
        let was_killed = Arc::new(AtomicBool::new(false));
        let is_killed = was_killed.clone();
        tokio::spawn(async move {
            // Only the leader; the job may have others.
            let ended = process.inner_mut().wait().await;
            let killed = is_killed.load(Ordering::SeqCst).then(|| ExitStatus::from_raw(KILLED));
            sender.send_replace(killed.or(ended.ok()));
        });
        Ok(ProcessGroup { id, pipes, job: Mutex::new(Some(job)), was_killed, exit })
    }

    /// The id of the leader.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The piped streams of the leader, once.
    pub fn take_pipes(&mut self) -> Pipes {
        std::mem::take(&mut self.pipes)
    }

    /// Kills all processes for a signal that asks them to end, as there is no such thing here. The console sends Ctrl-C
    /// itself.
    pub fn signal(&self, signal: Signal) -> bool {
        match signal {
            Signal::Interrupt | Signal::Continue => {}
            Signal::Terminate | Signal::Quit | Signal::Hangup | Signal::Kill => self.kill(),
        }
        self.exit.borrow().is_none()
    }

    /// Kills all processes: nothing asks one to end that has no window.
    pub async fn terminate(&self) {
        self.kill();
    }

    /// Whether other processes than the leader run.
    pub async fn has_others(&self) -> bool {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let running = job.and_then(|job| job.query_process_id_list().ok()).unwrap_or_default();
        let others: Vec<_> = running.into_iter().filter(|id| *id != self.id as usize).collect();
        !others.is_empty() && has_program(&others)
    }

    /// Waits until all processes have ended.
    pub async fn all_ended(&self) {
        self.leader_exit().await;
        while self.has_others().await {
            sleep(PAUSE).await;
        }
    }

    /// Kills all processes that are left, and waits for the leader, at most for `limit`. Returns how it ended.
    pub async fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.kill();
        timeout(limit, self.leader_exit()).await.ok()?
    }

    /// Waits until the leader has exited. `None` if that cannot be known.
    pub async fn leader_exit(&self) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        *exit.wait_for(Option::is_some).await.ok()?
    }

    /// How the leader ended, if it has.
    ///
    /// # Errors
    /// None; there are some on other systems.
    pub fn leader_status(&self) -> io::Result<Option<ExitStatus>> {
        Ok(*self.exit.borrow())
    }

    /// The end of the leader. Cancel-safe.
    ///
    /// # Errors
    /// The system cannot tell.
    pub async fn change(&mut self) -> io::Result<ProcessChange> {
        self.leader_exit().await.map(ProcessChange::Ended).ok_or_else(|| io::ErrorKind::Interrupted.into())
    }

    fn kill(&self) {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        if job.is_some() && self.exit.borrow().is_none() {
            self.was_killed.store(true, Ordering::SeqCst);
        }
    }
}

/// Whether one of the processes is a program, and not the host of a console, which ends soon after its last program.
fn has_program(ids: &[usize]) -> bool {
    let list = HPROCESSLIST::CreateToolhelp32Snapshot(co::TH32CS::SNAPPROCESS, None);
    list.is_ok_and(|mut list| {
        list.iter_processes().flatten().any(|entry| {
            ids.contains(&(entry.th32ProcessID as usize)) && !entry.szExeFile().eq_ignore_ascii_case("conhost.exe")
        })
    })
}

/// The command with a tag, which says to its processes who started them.
fn tagged(mut command: Command) -> Command {
    let tag = ProcessTag::new();
    let (name, value) = tag.variable();
    command.env(name, value);
    command
}

/// Puts a process into our job before it runs.
#[derive(Debug)]
struct Assignment {
    job: Arc<Job>,
    flags: u32,
}

impl CommandWrapper for Assignment {
    fn pre_spawn(&mut self, command: &mut Command, _: &CommandWrap) -> io::Result<()> {
        command.creation_flags(SUSPENDED | self.flags);
        Ok(())
    }

    fn post_spawn(&mut self, _: &mut Command, child: &mut Child, _: &CommandWrap) -> io::Result<()> {
        let handle = child.raw_handle().ok_or_else(|| io::Error::other("it has ended already"))?;
        let assigned = self.job.assign_process(handle as isize);
        assigned.map_err(|error| {
            // It would stay suspended for ever.
            let _ = child.start_kill();
            io::Error::other(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::is_alive, *};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A shell with a child that outlives it or not.
    fn shell(line: &str) -> ProcessGroup {
        ProcessGroup::start(crate::program::shell(line).into()).expect("starts")
    }

    async fn ended(id: u32) {
        let gone = async {
            while is_alive(id) {
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, gone).await.expect("it has ended");
    }

    #[tokio::test]
    async fn a_process_ends_with_its_code_and_is_then_not_alive() {
        let mut group = shell("exit 7");
        let change = timeout(PATIENCE, group.change()).await.expect("in time").expect("known");
        assert!(matches!(change, ProcessChange::Ended(status) if status.code() == Some(7)));
        assert!(!group.has_others().await);
        assert_eq!(group.finish(PATIENCE).await.and_then(|status| status.code()), Some(7));
    }

    #[tokio::test]
    async fn what_a_process_has_started_is_in_its_job_and_ends_with_it() {
        for is_dropped in [true, false] {
            let group = shell("ping -n 1000 127.0.0.1 >nul");
            let others = async {
                while !group.has_others().await {
                    sleep(PAUSE).await;
                }
            };
            timeout(PATIENCE, others).await.expect("it starts another");
            let job = group.job.lock().expect("alone").clone().expect("runs");
            let ids = job.query_process_id_list().expect("known");
            drop(job);
            if is_dropped {
                drop(group);
            } else {
                let status = group.finish(Duration::ZERO).await.expect("it has ended");
                assert_eq!(status.code(), Some(1), "it was killed");
            }
            for id in ids {
                ended(id.try_into().expect("an id")).await;
            }
        }
    }
}
