//! Connections between processes of one user on one machine. On Windows, no side can end its direction alone.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{LocalListener, LocalReader, LocalWriter, address_in, connect};
#[cfg(windows)]
pub use windows::{LocalListener, LocalReader, LocalWriter, address_in, connect};
