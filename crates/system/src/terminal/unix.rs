use std::{
    io::{self, IsTerminal, stdin},
    sync::OnceLock,
    time::Duration,
};

use nix::sys::signal::{SigSet, Signal};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{self, Pid, getpgrp, getpid, kill_process},
    termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp},
};

use crate::process::ProcessGroup;

/// The settings of the terminal before anything was read from it.
static SETTINGS: OnceLock<Termios> = OnceLock::new();

/// The terminal on stdin, which a command in its own process group borrows, as from a shell.
#[derive(Debug)]
pub struct Terminal {
    owner: Pid,
}

impl Terminal {
    /// `None` if stdin is not a terminal, or this process group is in the background.
    pub fn foreground() -> Option<Terminal> {
        let owner = getpgrp();
        (stdin().is_terminal() && tcgetpgrp(stdin()) == Ok(owner)).then_some(Terminal { owner })
    }

    /// Makes a process group the foreground group, which reads from the terminal and receives Ctrl-C.
    pub fn lend(&self, group: &ProcessGroup) {
        // The group may have ended.
        let _ = tcsetpgrp(stdin(), group.leader());
    }

    /// Whether a group is in the foreground.
    pub fn is_lent_to(&self, group: &ProcessGroup) -> bool {
        tcgetpgrp(stdin()) == Ok(group.leader())
    }

    /// Makes this process group the foreground group again.
    pub fn take_back(&self) {
        // The signal would stop a background process that calls this.
        let mut signals = SigSet::empty();
        signals.add(Signal::SIGTTOU);
        if let Ok(before) = signals.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK) {
            let _ = tcsetpgrp(stdin(), self.owner);
            let _ = before.thread_set_mask();
        }
    }

    /// Stops this process until it is continued. Lends the terminal again if this process is in the foreground then.
    pub fn suspend(&self, group: &ProcessGroup) {
        self.take_back();
        let _ = kill_process(getpid(), process::Signal::STOP);
        if tcgetpgrp(stdin()) == Ok(self.owner) {
            self.lend(group);
        }
    }
}

/// Keeps the settings of the terminal on stdin for [`restore_settings`].
pub fn save_settings() {
    if let Ok(settings) = tcgetattr(stdin()) {
        SETTINGS.get_or_init(|| settings);
    }
}

/// Restores what [`save_settings`] has kept. Does not wait for anything.
pub fn restore_settings() {
    let Some(settings) = SETTINGS.get() else { return };
    // A process in the background must not set them.
    if tcgetattr(stdin()).is_ok_and(|now| now.local_modes != settings.local_modes) {
        // Best effort: the terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, settings);
    }
}

/// Reads what was typed; `None` if that is nothing within `limit`.
///
/// # Errors
/// The terminal cannot be read.
pub fn read_within(buffer: &mut [u8], limit: Duration) -> io::Result<Option<usize>> {
    let stdin = stdin();
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&limit)) {
        Ok(0) | Err(Errno::INTR) => Ok(None),
        Ok(_) => Ok(Some(rustix::io::read(&stdin, buffer)?)),
        Err(error) => Err(error.into()),
    }
}
