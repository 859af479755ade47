//! Printing on standard output, without letting a server control the terminal.

pub(crate) mod json_tokens;
pub(crate) mod prose;
pub(crate) mod server_log;
pub(crate) mod table;
pub(crate) mod trace;

use std::io::{self, IsTerminal};

use parking_lot::Mutex;
use serde_json::value::RawValue;

use self::trace::Tracer;
use crate::cli::{Failure, output, style};
use rehearse_report::text::{is_harmful, printable_lines};

/// Prints the messages that made a result before it.
static TRACER: Mutex<Option<Tracer>> = Mutex::new(None);

/// From now on, the messages of this tracer stand before the results that they made.
pub(super) fn trace_before_results(tracer: Option<Tracer>) {
    *TRACER.lock() = tracer;
}

fn catch_up() {
    if let Some(tracer) = &*TRACER.lock() {
        tracer.catch_up();
    }
}

/// Prints a result in one write.
///
/// # Errors
/// Standard output cannot be written. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    catch_up();
    // The prompt is on a terminal, where stdout and stderr are the same.
    if style::print_above(text) {
        return Ok(());
    }
    output::write_styled(text.as_bytes())
}

/// Prints a value as JSON, escaped so that it cannot control a terminal.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let text = if io::stdout().is_terminal() { escaped(&text) } else { text };
    let text = text + "\n";
    catch_up();
    if style::print_above(&text) {
        return Ok(());
    }
    output::write(text.as_bytes())
}

/// As [`print()`]; `output::check_writes` reports a failure at the end.
pub(crate) fn print_unchecked(text: &str) {
    let _ = print(text);
}

/// JSON with escapes for control characters that JSON allows.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\n' | '\t' | '\r' => out.push(character),
            harmful if is_harmful(harmful) => {
                let mut units = [0; 2];
                harmful.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            other => out.push(other),
        }
    }
    out
}

/// The lines of a text: verbatim for a pipe, printable for a terminal.
pub(super) fn text_of(text: &str) -> String {
    text_for(text, io::stdout().is_terminal())
}

fn text_for(text: &str, is_for_terminal: bool) -> String {
    match is_for_terminal {
        true => printable_lines(text).map(|line| line + "\n").collect(),
        false if text.ends_with('\n') => text.to_owned(),
        false => format!("{text}\n"),
    }
}

/// Indented JSON, otherwise verbatim.
pub(crate) fn indented(raw: &RawValue) -> String {
    escaped(&json_tokens::indented(raw.get()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn json_keeps_its_meaning_without_what_controls_a_terminal() {
        let text = "{\"a\": \"x\u{9b}y\u{202e}\u{ffff}\"\n}";
        let safe = escaped(text);
        assert_eq!(safe, "{\"a\": \"x\\u009by\\u202e\\uffff\"\n}");
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(value(&safe), value(text));
    }

    #[test]
    fn a_text_is_changed_only_for_a_terminal() {
        let text = "a\u{1b}[2J\n\tb";
        assert_eq!(text_for(text, true), "a\\u{1b}[2J\n    b\n");
        assert_eq!((text_for(text, false), text_for("a\n", false)), (format!("{text}\n"), "a\n".to_owned()));
    }
}
