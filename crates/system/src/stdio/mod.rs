//! Async standard input and output of this process.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{Input, Output, stdout_closed, unread};
#[cfg(windows)]
pub use windows::{Input, Output, stdout_closed, unread};
