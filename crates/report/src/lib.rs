//! Results of runs and config checks, and their renderers. No IO.

pub mod bench;
pub mod check;
mod difference;
pub mod findings;
mod format;
mod github;
mod human;
mod json;
mod junit;
mod markdown;
mod milliseconds;
mod page;
pub mod palette;
mod results;
mod run_result;
mod scenario_sarif;
pub mod schema;
pub mod summary;
pub mod text;
mod wire_line;

use std::str::FromStr;

pub use format::{ReportFile, ReportFormat, UnknownReportFile, UnknownReportFormat};
pub use human::Layout;
pub use results::ReadError;
pub use run_result::{
    Cell, CellResult, CellViolation, Difference, Problem, RunResult, ScenarioResult, Status, StepResult, Totals,
    TraceLine, last_lines,
};
pub use wire_line::{WireKind, WireLine, marks};

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RunFormat {
    /// Text, styled with ANSI sequences.
    #[default]
    Human,
    /// The whole result.
    Json,
    /// For CI systems.
    Junit,
}

impl RunFormat {
    pub const ALL: [RunFormat; 3] = [RunFormat::Human, RunFormat::Json, RunFormat::Junit];

    pub const fn as_str(self) -> &'static str {
        match self {
            RunFormat::Human => "human",
            RunFormat::Json => "json",
            RunFormat::Junit => "junit",
        }
    }

    /// The report, with a final newline.
    pub fn render(self, result: &RunResult, layout: Layout) -> Vec<u8> {
        match self {
            RunFormat::Human => human::render(result, layout).into_bytes(),
            RunFormat::Json => json::render(result),
            RunFormat::Junit => junit::render(result),
        }
    }
}

/// The name of an unknown format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {0:?}; there are human, json and junit")]
pub struct UnknownFormat(pub String);

impl FromStr for RunFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        RunFormat::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use rehearse_protocol::{Direction, Protocol, Transport, Version};

    /// A cell that failed, with this text everywhere where a server could have put it.
    fn hostile(text: &str) -> RunResult {
        let text = || text.to_owned();
        let cell = |status, reason, steps| CellResult {
            cell: Cell { transport: Transport::Stdio, protocol: Protocol::Exact(Version::LATEST) },
            status,
            negotiated: None,
            reason,
            duration: Duration::ZERO,
            steps,
            stderr: vec![text()],
            violations: Vec::new(),
        };
        let step = StepResult {
            title: text(),
            line: 1,
            source: text(),
            status: Status::Failed,
            duration: Duration::ZERO,
            problems: vec![Problem {
                snapshot: None,
                message: text(),
                difference: Some(Difference { expected: "x".into(), actual: text() }),
                pending: None,
            }],
            trace: vec![TraceLine {
                server: text(),
                line: WireLine::new(Direction::ServerToClient, Duration::ZERO, text().as_bytes(), &[]),
            }],
        };
        let cells = vec![cell(Status::Failed, None, vec![step]), cell(Status::Error, Some(text()), Vec::new())];
        let scenario = ScenarioResult {
            name: text(),
            path: text().into(),
            source: Some(text()),
            description: None,
            cells,
            accepted: vec![text().into()],
            warnings: vec![text()],
        };
        let totals = Totals { failed: 1, errors: 1, ..Totals::default() };
        RunResult { totals, scenarios: vec![scenario], ..RunResult::new(1) }
    }

    #[test]
    fn a_server_can_neither_control_the_terminal_nor_break_the_xml() {
        let result = hostile("a\u{1b}[2Jb\u{1b}]0;title\u{9b}m\u{202e}\u{fffe}z");
        let layout = Layout { width: 160, trace: true };
        for format in [RunFormat::Human, RunFormat::Junit] {
            let bytes = format.render(&result, layout);
            let text = anstream::adapter::strip_str(std::str::from_utf8(&bytes).expect("UTF-8")).to_string();
            let harmful = |it: char| (it.is_control() && it != '\n') || matches!(it, '\u{202e}' | '\u{fffe}');
            assert!(!text.contains(harmful), "{format:?}: {text:?}");
            let whole = "a\\u{1b}[2Jb\\u{1b}]0;title\\u{9b}m\\u{202e}\\u{fffe}z";
            assert_eq!(text.matches("\\u{fffe}z").count(), text.matches(whole).count(), "{format:?}: {text}");
            assert!(text.matches(whole).count() >= 7, "{format:?}: {text}");
        }
    }
}
