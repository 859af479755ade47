//! The report on the expectations of a script.

use super::console::Console;
use crate::cli::style;
use rehearse_mock::engine::Engine;
use rehearse_report::text::printable_lines;

/// Prints and returns whether the expectations of the script were met. `is_requested` prints a message without
/// expectations, too.
pub(super) fn report(engine: &Engine, is_requested: bool, console: &Console) -> bool {
    let (bad, good, doubtful) = (style::BAD, style::GOOD, style::DOUBTFUL);
    let verification = engine.verify();
    let (name, count) = (engine.name(), verification.expectations);
    let name = style::printable(&name);
    if !verification.holds() {
        let lines: String = printable_lines(&verification.to_string()).map(|line| format!("  {line}\n")).collect();
        console.print(format!("{bad}✗ {name}: expectations failed:{bad:#}\n{lines}"));
        return false;
    }
    match (count, is_requested) {
        (0, false) => {}
        (0, true) => console.print(format!("{doubtful}{name} has no expectations{doubtful:#}: nothing to verify\n")),
        (1, _) => console.print(format!("{good}✓ {name}: the expectation is met{good:#}\n")),
        _ => console.print(format!("{good}✓ {name}: all {count} expectations met{good:#}\n")),
    }
    true
}
