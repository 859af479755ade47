//! Pipes, devices and standard streams that have a path.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{is_device, open_at_once, standard_stream};
#[cfg(windows)]
pub use windows::{is_device, open_at_once, standard_stream};

/// A standard stream that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardStream {
    Output,
    Error,
}
