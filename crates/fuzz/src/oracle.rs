//! Says whether the outcome of a call is wrong.

use std::{sync::LazyLock, time::Duration};

use regex::Regex;
use serde_json::Value as Json;

use rehearse_client::{Failure, ToolOutcome};
use rehearse_document::{json_schema::Validator, text::shortened};
use rehearse_report::fuzz::Oracle;

/// How much of a text is quoted.
const QUOTED: usize = 160;
/// JSON-RPC: Invalid params and Internal error (JSON-RPC 2.0, section 5.1).
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// A stack trace, in the words of the usual languages.
static STACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?m)Traceback \(most recent call last\)|^\s+at .+\(.+:\d+:\d+\)|^\s+at .+:\d+:\d+$|File ".+", line \d+, in |^goroutine \d+ \[|panicked at .+:\d+|^\s+at [\w.$]+\([\w]+\.java:\d+\)|\.rb:\d+:in "#,
    )
    .ok()
});
/// What is different each time, in the shape of a message.
static VARYING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|0x[0-9a-fA-F]+|\d+(?:\.\d+)?"#).ok());

/// What is wrong with an outcome.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wrong {
    pub(crate) oracle: Oracle,
    /// What was seen, as a sentence.
    pub(crate) message: String,
    /// The same for the same cause, whatever the input.
    pub(crate) shape: String,
}

impl Wrong {
    fn new(oracle: Oracle, message: String) -> Wrong {
        let shape = VARYING.as_ref().map_or_else(|| message.clone(), |it| it.replace_all(&message, "…").into_owned());
        Wrong { oracle, message, shape }
    }
}

/// What the oracles know of a tool.
pub(crate) struct Expected<'t> {
    /// Whether the schema accepts the arguments.
    pub(crate) is_valid: Option<bool>,
    pub(crate) output: Option<&'t Validator>,
    /// How long a call may take.
    pub(crate) limit: Duration,
    /// The text of the arguments: what the client itself has sent is no secret of the server.
    pub(crate) sent: &'t str,
}

/// What is wrong with the outcome of a call; the worst comes first.
pub(crate) fn judge(outcome: &Result<ToolOutcome, Failure>, expected: &Expected<'_>) -> Option<Wrong> {
    match outcome {
        Err(Failure::Disconnected { detail }) => {
            Some(Wrong::new(Oracle::Crash, format!("The connection ended before the answer: {detail}.")))
        }
        Err(Failure::Timeout(_)) => {
            let limit = expected.limit.as_secs_f64();
            Some(Wrong::new(
                Oracle::Hang,
                format!("No answer came within {limit:.1} s, and other calls were answered at once."),
            ))
        }
        Err(Failure::Malformed(why)) => Some(Wrong::new(Oracle::Malformed, format!("The answer is invalid: {why}."))),
        Err(Failure::Http { status, .. }) if *status >= 500 => {
            Some(Wrong::new(Oracle::InternalError, format!("The HTTP status is {status}, and there is no answer.")))
        }
        Err(Failure::Rpc(error)) => {
            let text = shortened(&error.message, QUOTED);
            match error.code {
                INTERNAL_ERROR => {
                    let message = format!(
                        "The answer is the protocol error -32603 ({text}); an error of a tool belongs in its result."
                    );
                    Some(Wrong::new(Oracle::InternalError, message))
                }
                INVALID_PARAMS if expected.is_valid == Some(true) => {
                    let message = format!("The schema accepts the arguments, and the server refuses them: {text}.");
                    Some(Wrong::new(Oracle::ValidRefused, message))
                }
                _ => leak(&error.message, expected),
            }
        }
        Ok(outcome) => of_result(outcome, expected),
        Err(_) => None,
    }
}

fn of_result(outcome: &ToolOutcome, expected: &Expected<'_>) -> Option<Wrong> {
    let raw: Json = serde_json::from_str(outcome.raw.get()).unwrap_or_default();
    let texts = raw["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    if let Some(wrong) = leak(&text, expected) {
        return Some(wrong);
    }
    if outcome.is_error {
        return None;
    }
    if let Some(output) = expected.output {
        let structured = &raw["structuredContent"];
        if structured.is_null() {
            let message = "The tool has an output schema, and the result has no structured content.".to_owned();
            return Some(Wrong::new(Oracle::OutputSchema, message));
        }
        if let Some(error) = output.iter_errors(structured).next() {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            let what = shortened(&error.to_string(), QUOTED);
            let message = format!("The structured content does not match the output schema{at}: {what}.");
            return Some(Wrong::new(Oracle::OutputSchema, message));
        }
    }
    (expected.is_valid == Some(false)).then(|| {
        let message = "The schema refuses the arguments, and the tool answers as if they were right.".to_owned();
        Wrong::new(Oracle::InvalidAccepted, message)
    })
}

/// A stack trace in a text.
fn leak(text: &str, expected: &Expected<'_>) -> Option<Wrong> {
    let found = STACK.as_ref()?.find(text)?;
    if expected.sent.contains(found.as_str().trim()) {
        return None;
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    Some(Wrong::new(Oracle::StackTrace, format!("The text has a stack trace: {}.", shortened(last, QUOTED))))
}
