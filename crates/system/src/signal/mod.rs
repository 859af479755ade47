//! The signals that ask a process to end, and those that we send.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::SignalStreams;
#[cfg(windows)]
pub use windows::SignalStreams;

/// A signal to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, Ctrl-C.
    Interrupt,
    /// SIGTERM; the end of the session on Windows.
    Terminate,
    /// SIGQUIT, Ctrl-Break.
    Quit,
    /// SIGHUP, the end of the console.
    Hangup,
    /// SIGCONT; nothing on Windows.
    Continue,
    /// SIGKILL.
    Kill,
}
