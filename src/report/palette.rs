//! The styles of everything that people read on a terminal.

use anstyle::{AnsiColor, Style};

pub const STRONG: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const REMOVED: Style = AnsiColor::Red.on_default();
pub const ADDED: Style = AnsiColor::Green.on_default();
