//! Lends the terminal to a command in its own process group, as a shell does.

use std::io::{IsTerminal, stdin};

use nix::sys::signal::{SigSet, Signal};
use rustix::{
    process::{self, Pid, getpgrp, getpid, kill_process},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// The terminal on stdin.
#[derive(Debug)]
pub(super) struct Terminal {
    owner: Pid,
}

impl Terminal {
    /// `None` if stdin is not a terminal, or this process group is in the background.
    pub(super) fn foreground() -> Option<Terminal> {
        let owner = getpgrp();
        (stdin().is_terminal() && tcgetpgrp(stdin()) == Ok(owner)).then_some(Terminal { owner })
    }

    /// Makes a process group the foreground group, which reads from the terminal and receives Ctrl-C.
    pub(super) fn lend(&self, group: Pid) {
        // The group may have ended.
        let _ = tcsetpgrp(stdin(), group);
    }

    /// Whether the foreground group was stopped because it used the terminal before it became the foreground group.
    pub(super) fn was_stopped_in_background(&self, signal: process::Signal, group: Pid) -> bool {
        [process::Signal::TTIN, process::Signal::TTOU].contains(&signal) && tcgetpgrp(stdin()) == Ok(group)
    }

    pub(super) fn take_back(&self) {
        // The signal would stop a background process that calls this.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTTOU);
        if let Ok(before) = signals.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK) {
            let _ = tcsetpgrp(stdin(), self.owner);
            let _ = before.thread_set_mask();
        }
    }

    /// Stops this process until it is continued. Lends the terminal again if this process is in the foreground then.
    pub(super) fn suspend(&self, group: Pid) {
        self.take_back();
        let _ = kill_process(getpid(), process::Signal::STOP);
        if tcgetpgrp(stdin()) == Ok(self.owner) {
            self.lend(group);
        }
    }
}
