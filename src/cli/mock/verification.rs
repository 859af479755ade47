//! What a script expected of its clients, and what came.

use super::console::Console;
use crate::{cli::style, mock::engine::Engine, report::text::printable_lines};

/// Tells whether everything came as the script expects, if it expects anything; or that it does not, if it should.
/// Whether it holds.
pub(super) fn report(engine: &Engine, is_wanted: bool, console: &Console) -> bool {
    let (bad, good, doubtful) = (style::BAD, style::GOOD, style::DOUBTFUL);
    let verification = engine.verify();
    let (name, count) = (engine.name(), verification.expectations);
    let name = style::printable(&name);
    if !verification.holds() {
        let lines: String = printable_lines(&verification.to_string()).map(|line| format!("  {line}\n")).collect();
        console.say(format!("{bad}not as {name} expects:{bad:#}\n{lines}"));
        return false;
    }
    match (count, is_wanted) {
        (0, false) => {}
        (0, true) => {
            console.say(format!("{doubtful}{name} expects nothing{doubtful:#}: there was nothing to verify\n"))
        }
        (1, _) => console.say(format!("{good}as {name} expects{good:#}\n")),
        _ => console.say(format!("{good}as {name} expects{good:#}: {count} expectations\n")),
    }
    true
}
