//! What no library for terminals does: who has the terminal, and its settings at the start.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{Terminal, read_within, restore_settings, save_settings};
#[cfg(windows)]
pub use windows::{Terminal, read_within, restore_settings, save_settings};
