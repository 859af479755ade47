//! The guard: a process that waits for the end of this one, and kills what it has left running.
//!
//! Whoever is killed cannot stop what it has started, and a server that ignores the end of its standard input would run
//! on for ever. So a second process is told of every process group as it comes and goes, through a pipe whose only
//! writer is this process. However this process ends, the pipe ends with it.
//!
//! A process that is just being started has no number yet, so the guard is told of its standard input beforehand, by
//! which Linux can find it; one that inherits ours is told of as soon as it runs. The guard cannot know of a process
//! that has left the group of its server.

use std::{
    collections::HashSet,
    fmt::Display,
    fs::File,
    io::{self, BufRead, PipeReader, Write},
    os::{
        fd::OwnedFd,
        unix::{fs::MetadataExt, process::CommandExt},
    },
    path::PathBuf,
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
        let (left, starting) = left(told);
        // The pipe ends after the newest process has become its program, for until then it has its end of it.
        for group in left.into_iter().chain(starting.into_iter().flat_map(readers)) {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Lets `spawn` start the leader of a group under the eyes of the guard; which is started now if there is to be one
    /// and it does not run yet. `stdin` is its standard input, if that is its own.
    ///
    /// # Errors
    /// Those of `spawn`, or the guard cannot be started.
    pub(super) fn enter<T>(
        stdin: Option<&PipeReader>,
        spawn: impl FnOnce() -> io::Result<(T, Pid)>,
    ) -> io::Result<(T, Pid)> {
        // Locked until it is known what came of it: nobody else tells anything in between.
        let Some(mut guard) = Guard::lock() else { return spawn() };
        if guard.process.is_none() {
            guard.process = Some(guard.command.spawn()?);
        }
        if let Some(stdin) = stdin {
            guard.tell('?', File::from(OwnedFd::from(stdin.try_clone()?)).metadata()?.ino());
        }
        let (started, group) = spawn()?;
        guard.tell('+', group.as_raw_pid());
        Ok((started, group))
    }

    /// To be called before the leader is reaped.
    pub(super) fn leave(group: Pid) {
        if let Some(mut guard) = Guard::lock() {
            guard.tell('-', group.as_raw_pid());
        }
    }

    fn lock() -> Option<MutexGuard<'static, Guard>> {
        GUARD.get().map(|guard| guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&mut self, sign: char, what: impl Display) {
        if let Some(pipe) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) {
            // A guard that was killed guards no more. In one write, so that no half line is ever left.
            let _ = pipe.write_all(format!("{sign}{what}\n").as_bytes());
        }
    }
}

/// The process groups that came and did not go; and the standard input of the one of which nothing more was told than
/// that it was about to come.
fn left(told: impl BufRead) -> (HashSet<Pid>, Option<u64>) {
    let (mut groups, mut starting) = (HashSet::new(), None);
    for line in told.split(b'\n').map_while(Result::ok) {
        let line = str::from_utf8(&line).unwrap_or_default();
        match (line.strip_prefix('+').and_then(group), line.strip_prefix('-').and_then(group)) {
            (Some(came), _) => groups.insert(came),
            (_, Some(went)) => groups.remove(&went),
            _ => false,
        };
        starting = line.strip_prefix('?').and_then(|pipe| pipe.parse().ok());
    }
    (groups, starting)
}

/// Never that of process 1: to kill it is to kill everyone.
fn group(id: &str) -> Option<Pid> {
    id.parse().ok().filter(|id| *id > 1).and_then(Pid::from_raw)
}

/// The processes whose standard input is this pipe; none on systems without `/proc`.
fn readers(pipe: u64) -> impl Iterator<Item = Pid> {
    let stdin = PathBuf::from(format!("pipe:[{pipe}]"));
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let reads = move |path: &PathBuf| std::fs::read_link(path.join("fd/0")).is_ok_and(|link| link == stdin);
    processes.map(|process| process.path()).filter(reads).filter_map(|path| group(path.file_name()?.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_went_are_left_alone_and_so_is_whatever_is_no_group() {
        let told = "?7\n+40\n+41\n-40\n+42\n\n43\n+1\n+0\n+-7\n+x\n-43\n+44\n-44\n+44\n";
        assert_eq!(left(told.as_bytes()).0, HashSet::from([41, 42, 44].map(|id| Pid::from_raw(id).expect("an id"))));
    }

    #[test]
    fn only_the_last_announcement_can_be_without_a_process() {
        assert_eq!(left(&b"?7\n+40\n?8\n+41\n?9\n"[..]).1, Some(9));
        assert_eq!(left(&b"?7\n?8\n+40\n"[..]).1, None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_found_by_its_standard_input() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let inode = File::from(OwnedFd::from(reader.try_clone().expect("a copy"))).metadata().expect("open").ino();
        let mut process = Command::new("cat").stdin(reader).spawn().expect("starts");
        assert_eq!(readers(inode).collect::<Vec<_>>(), [Pid::from_child(&process)]);
        drop(writer);
        process.wait().expect("ends");
    }
}
