//! The log messages and progress notifications of a server during a request.

use serde_json::Value;

use rehearse_document::text::shortened;
use rehearse_protocol::{Direction, Frame, Message};

/// How many characters of a message are shown.
const LONGEST: usize = 2000;

/// The severities of log messages (2025-11-25, Logging: Log Levels).
pub(crate) const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A line of the log.
#[derive(Debug, PartialEq)]
pub(crate) struct LogEntry {
    pub(crate) is_bad: bool,
    pub(crate) text: String,
}

pub(crate) fn log_entry(frame: &Frame) -> Option<LogEntry> {
    if frame.direction != Direction::ServerToClient {
        return None;
    }
    let Ok(Message::Notification(notification)) = frame.message() else { return None };
    let params: Value = serde_json::from_str(notification.params?.get()).ok()?;
    let words = |value: &Value| shortened(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), LONGEST);
    match &*notification.method {
        "notifications/message" => {
            let level = params["level"].as_str().unwrap_or_default();
            let is_bad =
                LEVELS.iter().position(|known| *known == level) >= LEVELS.iter().position(|it| *it == "warning");
            let logger = params["logger"].as_str().map(|logger| format!(" {logger}")).unwrap_or_default();
            Some(LogEntry { is_bad, text: format!("{level}{logger}: {}", words(&params["data"])) })
        }
        "notifications/progress" => {
            let total = params.get("total").map(|total| format!(" of {total}")).unwrap_or_default();
            let message = params["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
            Some(LogEntry { is_bad: false, text: format!("progress {}{total}{message}", params.get("progress")?) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn log_messages_and_progress_become_lines() {
        let log_entry = |method: &str, params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#);
            let (direction, at) = (Direction::ServerToClient, Duration::ZERO);
            log_entry(&Frame::new(direction, at, text.into())).map(|log_entry| (log_entry.is_bad, log_entry.text))
        };
        let expected = |is_bad, text: &str| Some((is_bad, text.to_owned()));
        assert_eq!(
            log_entry("message", r#"{"level":"info","logger":"db","data":"on"}"#),
            expected(false, "info db: on")
        );
        assert_eq!(
            log_entry("message", r#"{"level":"error","data":{"n":1.0}}"#),
            expected(true, r#"error: {"n":1.0}"#)
        );
        assert_eq!(
            log_entry("progress", r#"{"progress":1,"total":3,"message":"m"}"#),
            expected(false, "progress 1 of 3: m")
        );
        let long = log_entry("message", &format!(r#"{{"level":"info","data":"{}"}}"#, "é".repeat(LONGEST + 1)));
        assert_eq!(long, expected(false, &format!("info: {}…", "é".repeat(LONGEST))));
        assert_eq!((log_entry("progress", "{}"), log_entry("tools/list_changed", "{}")), (None, None));
    }
}
