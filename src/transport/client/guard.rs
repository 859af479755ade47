//! The guard: a process that waits for the end of this one, and kills what it has left running.
//!
//! Whoever is killed cannot stop what it has started, and a server that ignores the end of its standard input would run
//! on for ever. So a second process is told of every process group as it comes and goes, through a pipe whose only
//! writer is this process. However this process ends, the pipe ends with it.
//!
//! It cannot know of a process that has left the group of its server, nor of one that was started so shortly before the
//! end that there was no time to tell.

use std::{
    collections::HashSet,
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

static GUARD: OnceLock<Mutex<Guard>> = OnceLock::new();

/// The guard of this process, which is started with the first server. There is none until it is installed.
#[derive(Debug)]
pub struct Guard {
    command: Command,
    process: Option<Child>,
}

impl Guard {
    /// From now on servers are guarded by this command, which must call [`Guard::watch`] on its standard input. Only
    /// the first call in a process counts.
    pub fn install(mut command: Command) {
        // Ctrl-C of a terminal must not reach it, and it must hold nothing open that others wait for.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).current_dir("/");
        let _ = GUARD.set(Mutex::new(Guard { command, process: None }));
    }

    /// Ends the guard, and waits for it. The next server starts another.
    pub fn dismiss() {
        let Some(mut process) = Guard::lock().and_then(|mut guard| guard.process.take()) else { return };
        drop(process.stdin.take());
        // If it was killed, there is nothing left to do.
        let _ = process.wait();
    }

    /// What the guard itself does: hears of process groups until the one who tells of them is gone, and kills those
    /// that are left.
    pub fn watch(told: impl BufRead) {
        // `killall -9 rehearse` must not find it. There is no such name on other systems.
        let _ = std::fs::write("/proc/self/comm", "mcp-guard");
        for group in left(told) {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Starts the guard if there is to be one and it does not run yet.
    pub(super) fn prepare() -> io::Result<()> {
        if let Some(mut guard) = Guard::lock()
            && guard.process.is_none()
        {
            guard.process = Some(guard.command.spawn()?);
        }
        Ok(())
    }

    pub(super) fn enter(group: Pid) {
        Guard::tell('+', group);
    }

    pub(super) fn leave(group: Pid) {
        Guard::tell('-', group);
    }

    fn lock() -> Option<MutexGuard<'static, Guard>> {
        GUARD.get().map(|guard| guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(sign: char, group: Pid) {
        if let Some(mut guard) = Guard::lock()
            && let Some(pipe) = guard.process.as_mut().and_then(|process| process.stdin.as_mut())
        {
            // A guard that was killed guards no more. In one write, so that no half line is ever left.
            let _ = pipe.write_all(format!("{sign}{}\n", group.as_raw_pid()).as_bytes());
        }
    }
}

/// The process groups that came and did not go.
fn left(told: impl BufRead) -> HashSet<Pid> {
    let mut groups = HashSet::new();
    for line in told.split(b'\n').map_while(Result::ok) {
        let line = str::from_utf8(&line).unwrap_or_default();
        // Killing the group of process 1 would be killing everyone.
        let group = |id: &str| id.parse().ok().filter(|id| *id > 1).and_then(Pid::from_raw);
        match (line.strip_prefix('+').and_then(group), line.strip_prefix('-').and_then(group)) {
            (Some(came), _) => groups.insert(came),
            (_, Some(went)) => groups.remove(&went),
            _ => false,
        };
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_went_are_left_alone_and_so_is_whatever_is_no_group() {
        let told = "+40\n+41\n-40\n+42\n\n43\n+1\n+0\n+-7\n+x\n-43\n+44\n-44\n+44\n";
        assert_eq!(left(told.as_bytes()), HashSet::from([41, 42, 44].map(|id| Pid::from_raw(id).expect("an id"))));
    }
}
