//! The report on the expectations of a script.

use super::console::Console;
use crate::cli::style;
use rehearse_mock::engine::Engine;
use rehearse_report::text::printable_lines;

/// Prints and returns whether the client kept to the protocol and met the expectations of the script. `is_requested`
/// prints a message without expectations, too.
pub(super) fn report(engine: &Engine, is_requested: bool, console: &Console) -> bool {
    let (bad, good, doubtful) = (style::BAD, style::GOOD, style::DOUBTFUL);
    let verification = engine.verify();
    let (name, count) = (engine.name(), verification.expectations);
    let name = style::printable(&name);
    if !verification.holds() {
        let lines: String = printable_lines(&verification.to_string()).map(|line| format!("  {line}\n")).collect();
        let what = match verification.unmet.is_empty() && verification.unexpected.is_empty() {
            true => "the client does not keep to the protocol",
            false => "expectations failed",
        };
        console.print(format!("{bad}✗ {name}: {what}:{bad:#}\n{lines}"));
        return false;
    }
    for entry in &verification.tolerated {
        let (number, why) = (entry.number, entry.handling.to_string());
        console.print(format!("{doubtful}warning:{doubtful:#} number {number}: {}\n", style::printable(&why)));
    }
    match (count, is_requested) {
        (0, false) => {}
        (0, true) => {
            let what = "the client kept to the protocol, but there is nothing else to verify";
            console.print(format!("{doubtful}{name} has no expectations{doubtful:#}: {what}\n"));
        }
        (1, _) => console.print(format!("{good}✓ {name}: the expectation is met{good:#}\n")),
        _ => console.print(format!("{good}✓ {name}: all {count} expectations met{good:#}\n")),
    }
    true
}
