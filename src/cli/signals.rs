//! The signals that ask a process to end.

use std::{io, pin::pin};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::style;

/// SIGINT, SIGTERM, SIGQUIT and SIGHUP. While this exists they no longer end the process by themselves.
#[derive(Debug)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` under `nohup`: who has asked for the end of the terminal to be ignored is heeded.
    hangup: Option<Signal>,
}

impl Signals {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub(super) fn install() -> io::Result<Signals> {
        let hangup = SignalKind::hangup();
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: if is_ignored(hangup) { None } else { Some(signal(hangup)?) },
        })
    }

    /// The next signal. Cancel-safe.
    pub(super) async fn next(&mut self) -> Number {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Number::INT,
            _ = self.terminate.recv() => Number::TERM,
            _ = self.quit.recv() => Number::QUIT,
            _ = hangup => Number::HUP,
        }
    }

    /// Waits for what comes to its end sooner if there is haste. The first signal is told of with these words and makes
    /// haste; at one after that it is dropped, with all processes of it, and the result is `None`.
    pub(super) async fn hasten<T>(
        &mut self,
        haste: &CancellationToken,
        told: &str,
        leaving: impl Future<Output = T>,
    ) -> Option<T> {
        let mut leaving = pin!(leaving);
        loop {
            tokio::select! {
                left = &mut leaving => return Some(left),
                _ = self.next() => {}
            }
            if haste.is_cancelled() {
                return None;
            }
            style::leave_line();
            style::print(told);
            haste.cancel();
        }
    }
}

/// Whether a signal was ignored when this process was started, as far as the system tells.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored >> (signal.as_raw_value() - 1) & 1 == 1)
}
