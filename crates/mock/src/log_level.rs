//! Severities of log messages.

use rehearse_document::{Node, Problems};

pub(crate) const NAMES: &[&str] = &["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A severity of RFC 5424, least severe first (2025-11-25, Logging: Log Levels).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(u8);

impl LogLevel {
    /// The least severe level.
    pub const LEAST: LogLevel = LogLevel(0);
    /// The level `debug`, the least severe one.
    pub const DEBUG: LogLevel = LogLevel::LEAST;
    /// The level `info`.
    pub const INFO: LogLevel = LogLevel(1);
    /// The level `warning`.
    pub const WARNING: LogLevel = LogLevel(3);
    /// The level `error`.
    pub const ERROR: LogLevel = LogLevel(4);

    /// The level of this name.
    pub fn parse(name: &str) -> Option<LogLevel> {
        NAMES.iter().position(|level| *level == name).map(|index| LogLevel(index as u8))
    }

    /// The name of the level.
    pub fn as_str(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// The number of the level, 0 for the least severe.
    pub fn as_u8(self) -> u8 {
        self.0
    }

    /// The level with this number, or the most severe one.
    pub fn from_u8(number: u8) -> LogLevel {
        LogLevel(number.min(NAMES.len() as u8 - 1))
    }

    pub(crate) fn read(node: &Node) -> Result<LogLevel, Problems> {
        let level = LogLevel::parse(node.str()?);
        level.ok_or_else(|| node.problem(format!("the log levels are {}", NAMES.join(", "))).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_levels_are_ordered_by_severity() {
        let level = |name| LogLevel::parse(name).expect(name);
        assert!(level("debug") < level("info") && level("error") < level("emergency"));
        assert_eq!(LogLevel::from_u8(level("warning").as_u8()).as_str(), "warning");
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
