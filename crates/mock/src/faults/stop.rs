//! How an answer ends.

/// How an answer ends after its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ends normally.
    Finish,
    /// It never ends: the client waits.
    Hang,
    /// The stream or connection is closed in order; a WebSocket with this code.
    Close(u16),
    /// The connection is reset.
    Reset,
    /// The process exits with this code.
    Exit(u8),
}
