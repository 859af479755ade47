//! Other processes by their ids, and this one.

use std::{collections::BTreeMap, process::ExitStatus};

use winsafe::{HPROCESS, co};

use crate::process::tag::ProcessTag;

/// The exit code of a process that was killed, as Node.js and Python give it.
pub(super) const KILLED: u32 = 1;
/// `CREATE_NO_WINDOW`: it has a console of its own, which is never shown. Ctrl-C does not reach it.
pub(super) const NO_WINDOW: u32 = 0x0800_0000;
/// `STILL_ACTIVE`.
const ACTIVE: u32 = 259;

/// The system has killed them.
pub(in crate::process) fn kill_left(_: BTreeMap<ProcessTag, Option<u32>>) {}

/// Whether a process lives.
pub fn is_alive(id: u32) -> bool {
    let process = HPROCESS::OpenProcess(co::PROCESS::QUERY_LIMITED_INFORMATION, false, id);
    process.and_then(|process| process.GetExitCodeProcess()).is_ok_and(|code| code == ACTIVE)
}

/// Ends this process at once, even if its other threads hang.
pub fn kill_self() {
    let _ = HPROCESS::GetCurrentProcess().TerminateProcess(KILLED);
}

/// Not possible: an event of the console reaches all its processes.
pub fn interrupt_self() -> bool {
    false
}

/// None: a process has an exit code, however it ended.
pub fn exit_signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Keeps a process from the end of this console.
pub(in crate::process) fn detach(command: &mut std::process::Command) {
    std::os::windows::process::CommandExt::creation_flags(command, NO_WINDOW);
}

/// There is no such name.
pub(in crate::process) fn rename_self(_: &str) {}
