//! Windows: all processes of a console read from it and receive Ctrl-C, so that nothing is lent.

use std::{
    io::{self, Read, stdin},
    time::Duration,
};

use crate::process::ProcessGroup;

/// There is none that can be lent.
#[derive(Debug)]
pub enum Terminal {}

impl Terminal {
    /// Always `None`.
    pub fn foreground() -> Option<Terminal> {
        None
    }

    /// See Unix.
    pub fn lend(&self, _: &ProcessGroup) {
        match *self {}
    }

    /// See Unix.
    pub fn is_lent_to(&self, _: &ProcessGroup) -> bool {
        match *self {}
    }

    /// See Unix.
    pub fn take_back(&self) {
        match *self {}
    }

    /// See Unix.
    pub fn suspend(&self, _: &ProcessGroup) {
        match *self {}
    }
}

/// Nothing: what changes the mode of the console knows the mode before.
pub fn save_settings() {}

/// Ends the raw mode.
pub fn restore_settings() {
    let _ = crossterm::terminal::disable_raw_mode();
}

/// Reads a line of the console, however long that takes.
///
/// # Errors
/// The console cannot be read.
pub fn read_within(buffer: &mut [u8], _: Duration) -> io::Result<Option<usize>> {
    stdin().read(buffer).map(Some)
}
