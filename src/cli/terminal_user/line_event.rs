//! What comes of reading a line from the terminal.

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineEvent {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    Ended,
    /// A conversation needs the keyboard. The edited text is kept.
    Suspended,
}
