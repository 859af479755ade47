//! Finds processes by the tag in their environment.
//!
//! On Linux (5.3 or newer) this finds processes that have left the process group, or have just been started. It does not
//! find a process with another environment, or one whose environment this user cannot read.

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, File},
    io::{self, Read},
    path::Path,
    thread,
    time::{Duration, Instant},
};

#[cfg(target_os = "linux")]
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{PidfdFlags, pidfd_open, pidfd_send_signal},
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};

use crate::process::tag::ProcessTag;

/// How long [`kill`] looks for new processes, and waits for their end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The processes that have the tag now.
pub(super) fn processes(tag: &ProcessTag) -> Vec<TaggedProcess> {
    scan(&BTreeSet::from([tag.clone()])).processes
}

/// A running process with a tag.
#[derive(Debug)]
pub(super) struct TaggedProcess {
    pub(super) id: Pid,
    handle: Pidfd,
}

impl TaggedProcess {
    pub(super) fn signal(&self, signal: Signal) {
        self.handle.signal(signal);
    }
}

/// Kills all processes with one of the tags, and waits for their end.
pub(super) fn kill(tags: &BTreeSet<ProcessTag>) {
    let (deadline, mut killed) = (Instant::now() + PATIENCE, HashMap::new());
    loop {
        let Scan { processes, is_whole } = scan(tags);
        let mut is_over = is_whole;
        for process in processes {
            process.signal(Signal::KILL);
            // A killed process starts no others, but may have done so after the scan started.
            is_over &= killed.insert(process.id, process).is_some();
        }
        if is_over || Instant::now() > deadline {
            break;
        }
        thread::yield_now();
    }
    killed.values().for_each(|process| process.handle.wait(deadline));
}

/// Kills the groups and the processes with a tag that a killed process has left. A group is missing if its leader was
/// being started.
pub(in crate::process) fn kill_left(left: BTreeMap<ProcessTag, Option<u32>>) {
    // Never group 1: that would kill every process.
    let groups = left.values().flatten().filter(|id| **id > 1);
    for group in groups.filter_map(|id| Pid::from_raw((*id).try_into().ok()?)) {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    kill(&left.into_keys().collect());
}

/// The processes of the system at one time.
struct Scan {
    processes: Vec<TaggedProcess>,
    /// Whether no process was in the middle of an exec, without an environment.
    is_whole: bool,
}

fn scan(tags: &BTreeSet<ProcessTag>) -> Scan {
    let entries: Vec<_> = tags
        .iter()
        .map(|tag| {
            let (name, value) = tag.variable();
            format!("{name}={value}")
        })
        .collect();
    let mut buffer = Vec::with_capacity(PAGE);
    let mut read = |process: &Path, file: &str, check: &dyn Fn(&[u8]) -> bool| {
        read_into(&process.join(file), &mut buffer).is_ok_and(|()| check(&buffer))
    };
    let has_tag = |environment: &[u8]| {
        environment.split(|byte| *byte == 0).any(|entry| entries.iter().any(|tag| tag.as_bytes() == entry))
    };
    let mut scan = Scan { processes: Vec::new(), is_whole: true };
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        let (path, is_empty) = (process.path(), Cell::new(false));
        let is_tagged = read(&path, "environ", &|environment| {
            is_empty.set(environment.is_empty());
            has_tag(environment)
        });
        if is_tagged {
            // Read again behind the handle: if the process still runs, both mean the same one.
            if let Ok(handle) = Pidfd::open(id)
                && read(&path, "environ", &has_tag)
            {
                scan.processes.push(TaggedProcess { id, handle });
            }
        } else if is_empty.get()
            && read(&path, "statm", &|size| !size.starts_with(b"0 "))
            && read(&path, "cmdline", &<[u8]>::is_empty)
        {
            scan.is_whole = false;
        }
    }
    scan
}

/// How much is read at once of a file below `/proc`; most are smaller.
const PAGE: usize = 16 << 10;

/// Reads a file below `/proc`, which has no size, with few system calls: each of them takes time for every process of the
/// machine.
pub(super) fn read_into(path: &Path, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut len = 0;
    loop {
        buffer.resize(len + PAGE, 0);
        let read = file.read(&mut buffer[len..])?;
        len += read;
        // A short read may be in the middle, but never of nothing.
        if read == 0 {
            buffer.truncate(len);
            return Ok(());
        }
    }
}

/// Identifies one process, even if its id is used again.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Pidfd(OwnedFd);

#[cfg(target_os = "linux")]
impl Pidfd {
    fn open(id: Pid) -> Result<Pidfd, Errno> {
        pidfd_open(id, PidfdFlags::empty()).map(Pidfd)
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(&self.0, signal);
    }

    /// Waits until the process has ended, at most until the deadline.
    fn wait(&self, deadline: Instant) {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()));
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], left.ok().as_ref());
    }
}

/// Other systems have none, so there is no [`TaggedProcess`] either.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum Pidfd {}

#[cfg(not(target_os = "linux"))]
impl Pidfd {
    fn open(_: Pid) -> Result<Pidfd, Errno> {
        Err(Errno::NOSYS)
    }

    fn signal(&self, _: Signal) {
        match *self {}
    }

    fn wait(&self, _: Instant) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_processes_with_the_whole_variable_are_found_and_killed() {
        use std::process::{Child, Command};

        let (tag, other) = (ProcessTag::new(), ProcessTag::new());
        let (name, value) = tag.variable();
        let start =
            |name: &str, value: &str| Command::new("cat").env(name, value).stdin(std::process::Stdio::piped()).spawn();
        let mut marked: [Child; 2] = std::array::from_fn(|_| start(name, value).expect("starts"));
        let mut others = [(name, "10"), (&name[1..], value), ("A", &format!("{name}={value}")), other.variable()]
            .map(|(name, value)| start(name, value).expect("starts"));
        let found: HashSet<_> = processes(&tag).iter().map(|process| process.id).collect();
        assert_eq!(found, marked.iter().map(Pid::from_child).collect());
        kill(&BTreeSet::from([tag.clone(), ProcessTag::new()]));
        for process in &mut marked {
            assert!(!process.wait().expect("ends").success());
        }
        assert!(processes(&tag).is_empty());
        for process in &mut others {
            drop(process.stdin.take());
            assert!(process.wait().expect("ends").success());
        }
    }
}
