use std::{future::pending, io};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::Signal;

impl Signal {
    pub(crate) fn number(self) -> Number {
        match self {
            Signal::Interrupt => Number::INT,
            Signal::Terminate => Number::TERM,
            Signal::Quit => Number::QUIT,
            Signal::Hangup => Number::HUP,
            Signal::Continue => Number::CONT,
            Signal::Kill => Number::KILL,
        }
    }
}

/// The signals that ask this process to end.
#[derive(Debug)]
pub struct SignalStreams {
    interrupt: Stream,
    terminate: Stream,
    quit: Stream,
    /// `None` if SIGHUP is ignored, as under `nohup`.
    hangup: Option<Stream>,
}

impl SignalStreams {
    /// Must be called within a tokio runtime. From then on, the signals do not end this process.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn install() -> io::Result<SignalStreams> {
        let hangup = SignalKind::hangup();
        Ok(SignalStreams {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: if is_ignored(hangup) { None } else { Some(signal(hangup)?) },
        })
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.quit.recv() => Signal::Quit,
            _ = hangup => Signal::Hangup,
        }
    }
}

/// Whether a signal was ignored when this process started.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored >> (signal.as_raw_value() - 1) & 1 == 1)
}
