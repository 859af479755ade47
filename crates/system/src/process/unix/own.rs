//! Other processes by their ids, and this one.

use std::{
    fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::ExitStatus,
};

use rustix::process::{Pid, Signal as Number, getpid, kill_process, test_kill_process};

/// Whether a process lives, or has not been reaped.
pub fn is_alive(id: u32) -> bool {
    let id = id.try_into().ok().and_then(Pid::from_raw);
    id.is_some_and(|id| test_kill_process(id).is_ok())
}

/// Ends this process at once, even if its other threads hang.
pub fn kill_self() {
    let _ = kill_process(getpid(), Number::KILL);
}

/// Sends this process the signal of Ctrl-C. Returns whether that is possible.
pub fn interrupt_self() -> bool {
    kill_process(getpid(), Number::INT).is_ok()
}

/// The number of the signal that has ended a process.
pub fn exit_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Keeps a process from the signals of this terminal.
pub(in crate::process) fn detach(command: &mut std::process::Command) {
    command.process_group(0).current_dir("/");
}

/// Gives this process a name that `killall` does not match. There is no such name on other systems than Linux.
pub(in crate::process) fn rename_self(name: &str) {
    let _ = fs::write("/proc/self/comm", name);
}
