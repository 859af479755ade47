//! The styles of terminal output.

use anstyle::{AnsiColor, Style};
use miette::{MietteHandler, MietteHandlerOpts, RgbColors};

pub const STRONG: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const DOUBTFUL: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const REMOVED: Style = AnsiColor::Red.on_default();
pub const ADDED: Style = AnsiColor::Green.on_default();

/// A text in a style.
pub(crate) fn styled(text: impl std::fmt::Display, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// The handler that draws diagnostics with their source; `None` is the width of the terminal.
pub fn graphical(width: Option<usize>) -> MietteHandler {
    let options = MietteHandlerOpts::new().force_graphical(true).terminal_links(false).unicode(true);
    let options = options.color(true).rgb_colors(RgbColors::Never);
    match width {
        Some(width) => options.width(width).build(),
        None => options.build(),
    }
}
