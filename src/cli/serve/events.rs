//! The events of runs on stderr.

use crate::cli::{mock::console::Console, style::printable};
use rehearse_agent::{EmitFuture, Event, EventSink, RunLabel};

/// Prints a line for each tool call and what goes wrong.
pub(super) struct EventPrinter {
    console: Console,
}

impl EventPrinter {
    pub(super) fn new(console: Console) -> EventPrinter {
        EventPrinter { console }
    }
}

impl EventSink for EventPrinter {
    fn emit<'a>(&'a self, run: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let text = match event {
            Event::ToolCall { call, .. } => format!("→ {}", call.name),
            Event::ToolResult(result) => format!("{} {}", if result.is_error { "✗" } else { "✓" }, result.tool),
            Event::Warning(text) => format!("warning: {text}"),
            Event::Ended { error: Some(error) } => format!("failed: {error}"),
            _ => return Box::pin(async { Ok(()) }),
        };
        let line = format!("#### {} [{}] {text}", run.agent, run.run_id);
        self.console.print(format!("{}\n", printable(&line)));
        Box::pin(async { Ok(()) })
    }
}
