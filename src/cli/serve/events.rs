//! The events of runs on stderr.

use crate::cli::{mock::console::Console, style::printable};
use rehearse_agent::{EmitFuture, Event, EventSink, RunLabel};

/// Prints a line for each tool call, what goes wrong, and what a run took.
pub(super) struct EventPrinter {
    console: Console,
    /// The parent gets the other events.
    only_warnings: bool,
}

impl EventPrinter {
    pub(super) fn new(console: Console, only_warnings: bool) -> EventPrinter {
        EventPrinter { console, only_warnings }
    }
}

impl EventSink for EventPrinter {
    fn emit<'a>(&'a self, run: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let print = |text: &str| {
            let line = format!("#### {} [{}] {text}", run.agent, run.run_id);
            self.console.print(format!("{}\n", printable(&line)));
        };
        match event {
            Event::Warning(text) => print(&format!("warning: {text}")),
            _ if self.only_warnings => {}
            Event::ToolCall { call, .. } => print(&format!("→ {}", call.name)),
            Event::ToolResult(result) => print(&format!("{} {}", if result.is_error { "✗" } else { "✓" }, result.tool)),
            Event::Ended { error, statistics } => {
                error.iter().for_each(|error| print(&format!("failed: {error}")));
                print(&format!("ended: {statistics}"));
            }
            _ => {}
        }
        Box::pin(async { Ok(()) })
    }
}
