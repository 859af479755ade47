//! The reaper: a second process that waits for the end of this one, and cleans up after it.
//!
//! A process that is killed cannot stop its servers, and a server may ignore the end of its standard input. So the
//! reaper is notified of every command and temporary folder through a pipe that only this process writes to. However
//! this process ends, the pipe ends with it.
//!
//! On Windows the system ends the processes itself, and only folders are registered.
//!
//! A process has no id before it is started, so the reaper is first sent its [`ProcessTag`], and its group as soon as
//! it runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use super::{
    system::{detach, kill_left, rename_self},
    tag::ProcessTag,
};

/// Ends a record: neither a tag nor a path can contain it.
const END: u8 = 0;

static REAPER: OnceLock<Mutex<ReaperProcess>> = OnceLock::new();

/// The reaper of this process, which is started with the first command or folder after [`ReaperProcess::install`].
#[derive(Debug)]
pub struct ReaperProcess {
    command: Command,
    process: Option<Child>,
}

impl ReaperProcess {
    /// Sets the command of the reaper, which must call [`ReaperProcess::watch`] with its standard input. Only the first
    /// call in a process has an effect.
    pub fn install(mut command: Command) {
        // It must survive Ctrl-C, and must not hold files open.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        detach(&mut command);
        let _ = REAPER.set(Mutex::new(ReaperProcess { command, process: None }));
    }

    /// Ends the reaper, and waits for it. The next command starts another.
    pub fn dismiss() {
        let Some(mut process) = ReaperProcess::lock().and_then(|mut guard| guard.process.take()) else { return };
        drop(process.stdin.take());
        // If it was killed, there is nothing left to do.
        let _ = process.wait();
    }

    /// Runs the reaper: reads records until the pipe ends, then kills the processes and removes the folders that are
    /// left.
    pub fn watch(input: impl BufRead) {
        // `killall -9 rehearse` must not find it.
        rename_self("mcp-guard");
        // A new process holds the pipe until its exec, so all processes have their tag by then.
        let left = Leftovers::from_records(input);
        kill_left(left.commands);
        for folder in left.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }

    /// The group of a tag that is registered.
    #[cfg(unix)]
    pub(super) fn assign(tag: &ProcessTag, group: u32) {
        ReaperProcess::send('=', &format!("{tag} {group}"));
    }

    /// Registers a tag or an absolute path before it is used. Starts the reaper if one is installed and does not run
    /// yet.
    ///
    /// # Errors
    /// The reaper cannot be started.
    pub(crate) fn register(what: impl AsRef<str>) -> io::Result<()> {
        let Some(mut guard) = ReaperProcess::lock() else { return Ok(()) };
        if guard.process.is_none() {
            guard.process = Some(guard.command.spawn()?);
        }
        drop(guard);
        ReaperProcess::send('+', what.as_ref());
        Ok(())
    }

    /// Must be called when what was registered is gone; for a tag, before the leader of its group is reaped.
    pub(crate) fn unregister(what: impl AsRef<str>) {
        ReaperProcess::send('-', what.as_ref());
    }

    fn lock() -> Option<MutexGuard<'static, ReaperProcess>> {
        REAPER.get().map(|guard| guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn send(sign: char, what: &str) {
        let Some(mut guard) = ReaperProcess::lock() else { return };
        if let Some(pipe) = guard.process.as_mut().and_then(|process| process.stdin.as_mut()) {
            let record = [sign.to_string().as_bytes(), what.as_bytes(), &[END]].concat();
            // An error means that the reaper was killed. One write, so that no half record is left.
            let _ = pipe.write_all(&record);
        }
    }
}

/// What is registered at the end.
#[derive(Debug, Default, PartialEq)]
struct Leftovers {
    /// With the groups of those that run.
    commands: BTreeMap<ProcessTag, Option<u32>>,
    folders: BTreeSet<PathBuf>,
}

impl Leftovers {
    fn from_records(records: impl BufRead) -> Leftovers {
        let mut left = Leftovers::default();
        for record in records.split(END).map_while(Result::ok) {
            let Some((sign, what)) = record.split_first() else { continue };
            let text = str::from_utf8(what).unwrap_or_default();
            let path = PathBuf::from(text);
            match (sign, ProcessTag::parse(text)) {
                (b'+', Some(tag)) => drop(left.commands.insert(tag, None)),
                (b'-', Some(tag)) => drop(left.commands.remove(&tag)),
                (b'+', None) if path.is_absolute() => drop(left.folders.insert(path)),
                (b'-', None) => drop(left.folders.remove(&path)),
                (b'=', None) => left.runs(text),
                _ => {}
            }
        }
        left
    }

    fn runs(&mut self, text: &str) {
        let Some((tag, id)) = text.split_once(' ') else { return };
        // Never group 1: that would kill every process.
        let group = id.parse().ok().filter(|id| *id > 1);
        if let Some(command) = ProcessTag::parse(tag).and_then(|tag| self.commands.get_mut(&tag)) {
            *command = group;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leftovers(records: &[String]) -> Leftovers {
        Leftovers::from_records(
            records.iter().flat_map(|record| [record.as_bytes(), &[END]].concat()).collect::<Vec<_>>().as_slice(),
        )
    }

    #[test]
    fn finished_jobs_and_other_processes_are_left_alone() {
        let tags: [ProcessTag; 7] = std::array::from_fn(|_| ProcessTag::new());
        let [went, runs, starts, odd, ..] = &tags;
        let mut lines: Vec<_> = [went, runs, starts, odd].map(|tag| format!("+{tag}")).into();
        lines.extend([format!("={went} 40"), format!("={runs} 41"), format!("={odd} 1"), format!("-{went}")]);
        let unknown = &tags[4];
        lines.extend([format!("={unknown} 42"), format!("-{}", tags[5]), String::new(), format!("?{}", tags[6])]);
        lines.extend(["+PATH", "=43", "+"].map(str::to_owned));
        let expected = [(runs.clone(), Some(41)), (starts.clone(), None), (odd.clone(), None)];
        assert_eq!(leftovers(&lines), Leftovers { commands: expected.into(), folders: BTreeSet::new() });
    }

    #[test]
    fn folders_that_went_are_left_alone_and_so_is_a_path_that_depends_on_where_the_guard_is() {
        let root = std::env::temp_dir().display().to_string();
        let lines = ["+{}/a", "+{}/b", "+{}/c\nd", "-{}/b", "-{}/e", "+tmp", "+.", "={}/f 1"];
        let folders = ["{}/a", "{}/c\nd"].map(|path| PathBuf::from(path.replace("{}", &root))).into();
        let lines = lines.map(|line| line.replace("{}", &root));
        assert_eq!(leftovers(&lines), Leftovers { commands: BTreeMap::new(), folders });
    }
}
