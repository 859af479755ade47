//! `--log-format json`: messages on stderr as lines of JSON, in the form of Go's `slog`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

use anstream::adapter::strip_str;
use serde_json::{Map, Value};

/// How messages begin, and the level of each in the log.
const LEVELS: [(&str, &str); 5] =
    [("error:", "ERROR"), ("warning:", "WARN"), ("info:", "INFO"), ("hint:", "INFO"), ("debug:", "DEBUG")];

static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on messages are JSON.
pub(super) fn use_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

pub(super) fn is_json() -> bool {
    IS_JSON.load(Ordering::Relaxed)
}

/// The line for a message with fields of its own.
pub(super) fn line(level: &str, message: &str, fields: &[(&str, Value)]) -> String {
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let known = [("time", time.into()), ("level", level.into()), ("msg", message.into())];
    let all = known.into_iter().chain(fields.iter().cloned());
    let line: Map<String, Value> = all.map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Object(line).to_string() + "\n"
}

/// The line for a styled text that begins with its level; empty for an empty text.
pub(super) fn line_of(text: &str) -> String {
    let text = strip_str(text).to_string();
    let text = text.trim();
    let found = LEVELS.iter().find_map(|(word, level)| Some((*level, text.strip_prefix(word)?.trim_start())));
    let (level, message) = found.unwrap_or(("INFO", text));
    if message.is_empty() { String::new() } else { line(level, message, &[]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::style::{DOUBTFUL, STRONG};

    #[test]
    fn a_message_becomes_a_line_with_its_level_and_without_its_styles() {
        let read = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert!(line["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
            [line["level"].clone(), line["msg"].clone()]
        };
        let warning = format!("{DOUBTFUL}warning:{DOUBTFUL:#} the server {STRONG}a{STRONG:#} is gone\n  really\n");
        assert_eq!(read(&line_of(&warning)), ["WARN", "the server a is gone\n  really"]);
        assert_eq!(read(&line_of("connected\n")), ["INFO", "connected"]);
        assert_eq!(line_of("\n"), "");
    }
}
