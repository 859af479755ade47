//! How an answer ends.

/// What comes after the last byte of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What always comes.
    Finish,
    /// Nothing at all: the client waits.
    Hang,
    /// The stream or connection is closed in order; a WebSocket with this code.
    Close(u16),
    /// The connection is reset.
    Reset,
    /// The process exits with this code.
    Exit(u8),
}
