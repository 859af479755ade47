//! The guard: a process that waits for the end of this one, and clears away what it has left.
//!
//! Whoever is killed cannot stop what it has started, and a server that ignores the end of its standard input would run
//! on for ever. So a second process is told of every command and of every temporary folder as they come and go, through
//! a pipe whose only writer is this process. However this process ends, the pipe ends with it.
//!
//! A process that is just being started has no number yet, so the guard is told of its [`Mark`] beforehand, and of its
//! group as soon as it runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    io::{self, BufRead, Write},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::mark::{self, Mark};

/// What ends a record: neither a mark nor a path can hold it.
const END: u8 = 0;

static GUARD: OnceLock<Mutex<Guard>> = OnceLock::new();

/// The guard of this process, which is started with the first command or folder. There is none until it is installed.
#[derive(Debug)]
pub struct Guard {
    command: Command,
    process: Option<Child>,
}

impl Guard {
    /// From now on what is started is guarded by this command, which must call [`Guard::watch`] on its standard input.
    /// Only the first call in a process counts.
    pub fn install(mut command: Command) {
        // Ctrl-C of a terminal must not reach it, and it must hold nothing open that others wait for.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).current_dir("/");
        let _ = GUARD.set(Mutex::new(Guard { command, process: None }));
    }

    /// Ends the guard, and waits for it. The next command starts another.
    pub fn dismiss() {
        let Some(mut process) = Guard::lock().and_then(|mut guard| guard.process.take()) else { return };
        drop(process.stdin.take());
        // If it was killed, there is nothing left to do.
        let _ = process.wait();
    }

    /// What the guard itself does: hears what comes and goes until the one who tells of it is gone, and then kills the
    /// processes and removes the folders that are left.
    pub fn watch(told: impl BufRead) {
        // `killall -9 rehearse` must not find it. There is no such name on other systems.
        let _ = fs::write("/proc/self/comm", "mcp-guard");
        // The pipe ends after the newest process has become its program, for until then it has its end of it.
        let left = Left::of(told);
        for group in left.jobs.values().flatten() {
            // It may have ended by itself.
            let _ = kill_process_group(*group, Signal::KILL);
        }
        mark::kill(&left.jobs.into_keys().collect());
        for folder in left.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }

    /// Lets `spawn` start the leader of a group with this mark under the eyes of the guard.
    ///
    /// # Errors
    /// Those of `spawn`, or the guard cannot be started.
    pub(super) fn enter<T>(mark: &Mark, spawn: impl FnOnce() -> io::Result<(T, Pid)>) -> io::Result<(T, Pid)> {
        Guard::announce(mark.to_string())?;
        let started = spawn();
        match &started {
            Ok((_, group)) => Guard::tell('=', format!("{mark} {}", group.as_raw_pid())),
            Err(_) => Guard::leave(mark.to_string()),
        }
        started
    }

    /// Tells of a mark or an absolute path before there is anything of it. The guard is started now if there is to be
    /// one and it does not run yet.
    ///
    /// # Errors
    /// The guard cannot be started.
    pub(super) fn announce(what: impl AsRef<OsStr>) -> io::Result<()> {
        let Some(mut guard) = Guard::lock() else { return Ok(()) };
        if guard.process.is_none() {
            guard.process = Some(guard.command.spawn()?);
        }
        drop(guard);
        Guard::tell('+', what);
        Ok(())
    }

    /// To be called when what was announced is gone; of a mark, before the leader of its group is reaped.
    pub(super) fn leave(what: impl AsRef<OsStr>) {
        Guard::tell('-', what);
    }

    fn lock() -> Option<MutexGuard<'static, Guard>> {
        GUARD.get().map(|guard| guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(sign: char, what: impl AsRef<OsStr>) {
        let Some(mut guard) = Guard::lock() else { return };
        if let Some(pipe) = guard.process.as_mut().and_then(|process| process.stdin.as_mut()) {
            let record = [sign.to_string().as_bytes(), what.as_ref().as_bytes(), &[END]].concat();
            // A guard that was killed guards no more. In one write, so that no half record is ever left.
            let _ = pipe.write_all(&record);
        }
    }
}

/// What came and did not go.
#[derive(Debug, Default, PartialEq)]
struct Left {
    /// With the groups of those that run.
    jobs: BTreeMap<Mark, Option<Pid>>,
    folders: BTreeSet<PathBuf>,
}

impl Left {
    fn of(told: impl BufRead) -> Left {
        let mut left = Left::default();
        for record in told.split(END).map_while(Result::ok) {
            let Some((sign, what)) = record.split_first() else { continue };
            let path = Path::new(OsStr::from_bytes(what));
            let text = str::from_utf8(what).unwrap_or_default();
            match (sign, Mark::read(text)) {
                (b'+', Some(mark)) => drop(left.jobs.insert(mark, None)),
                (b'-', Some(mark)) => drop(left.jobs.remove(&mark)),
                (b'+', None) if path.is_absolute() => drop(left.folders.insert(path.to_owned())),
                (b'-', None) => drop(left.folders.remove(path)),
                (b'=', None) => left.runs(text),
                _ => {}
            }
        }
        left
    }

    fn runs(&mut self, text: &str) {
        let Some((mark, id)) = text.split_once(' ') else { return };
        // Never that of process 1: to kill it is to kill everyone.
        let group = id.parse().ok().filter(|id| *id > 1).and_then(Pid::from_raw);
        if let Some(job) = Mark::read(mark).and_then(|mark| self.jobs.get_mut(&mark)) {
            *job = group;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(records: &[String]) -> Left {
        Left::of(records.iter().flat_map(|record| [record.as_bytes(), &[END]].concat()).collect::<Vec<_>>().as_slice())
    }

    #[test]
    fn jobs_that_went_are_left_alone_and_so_is_whatever_is_no_job() {
        let marks: [Mark; 7] = std::array::from_fn(|_| Mark::new());
        let [went, runs, starts, odd, ..] = &marks;
        let mut told: Vec<_> = [went, runs, starts, odd].map(|mark| format!("+{mark}")).into();
        told.extend([format!("={went} 40"), format!("={runs} 41"), format!("={odd} 1"), format!("-{went}")]);
        let unknown = &marks[4];
        told.extend([format!("={unknown} 42"), format!("-{}", marks[5]), String::new(), format!("?{}", marks[6])]);
        told.extend(["+PATH", "=43", "+"].map(str::to_owned));
        let expected = [(runs.clone(), Pid::from_raw(41)), (starts.clone(), None), (odd.clone(), None)];
        assert_eq!(left(&told), Left { jobs: expected.into(), folders: BTreeSet::new() });
    }

    #[test]
    fn folders_that_went_are_left_alone_and_so_is_a_path_that_depends_on_where_the_guard_is() {
        let told = ["+/tmp/a", "+/tmp/b", "+/tmp/c\nd", "-/tmp/b", "-/tmp/e", "+tmp", "+.", "=/tmp/f 1"];
        let folders = ["/tmp/a", "/tmp/c\nd"].map(PathBuf::from).into();
        assert_eq!(left(&told.map(str::to_owned)), Left { jobs: BTreeMap::new(), folders });
    }
}
