//! Lending the terminal to a command that runs in a process group of its own, as a shell does.

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
    /// `None` if stdin is no terminal, or is one that somebody else has at the moment.
    pub(super) fn foreground() -> Option<Terminal> {
        let owner = getpgrp();
        (stdin().is_terminal() && tcgetpgrp(stdin()) == Ok(owner)).then_some(Terminal { owner })
    }

    /// Lets a process group read from it, and hear its Ctrl-C.
    pub(super) fn lend(&self, group: Pid) {
        // A group that is gone needs none.
        let _ = tcsetpgrp(stdin(), group);
    }

    /// Whether a group that has the terminal was stopped for what it did before it had it. The system sends this signal
    /// after it has looked whose the terminal is, so it may come when that has changed.
    pub(super) fn was_missing(&self, signal: process::Signal, group: Pid) -> bool {
        [process::Signal::TTIN, process::Signal::TTOU].contains(&signal) && tcgetpgrp(stdin()) == Ok(group)
    }

    pub(super) fn take_back(&self) {
        // Whoever sets this without having the terminal would be stopped by the signal.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTTOU);
        if let Ok(before) = signals.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK) {
            let _ = tcsetpgrp(stdin(), self.owner);
            let _ = before.thread_set_mask();
        }
    }

    /// Stops this process until somebody continues it, who may have given it the terminal.
    pub(super) fn suspend(&self, group: Pid) {
        self.take_back();
        let _ = kill_process(getpid(), process::Signal::STOP);
        if tcgetpgrp(stdin()) == Ok(self.owner) {
            self.lend(group);
        }
    }
}
