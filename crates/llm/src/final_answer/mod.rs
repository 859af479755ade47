//! The answer of a subagent: the arguments of its call of the tool `final_answer`, or else its last text.
//!
//! A host that needs structured answers gives its subagent one more tool, whose input schema is the schema of the answer.
//! The tool is never executed: a call of it ends the run. [`AnswerSchema`] is that schema and makes the definition of the
//! tool, [`Dialog`] is the transcript, and [`extract`] gets the answer from it. No IO, no retries, no repairs: an invalid
//! answer is an error with the path of every violation.
//!
//! ```
//! use rehearse_document::Source;
//! use rehearse_llm::final_answer::{AnswerSchema, Dialog, extract};
//!
//! let schema = Source::new("answer.json", r#"{ "type": "object", "required": ["verdict"] }"#);
//! let schema = AnswerSchema::parse(&schema)?;
//! let dialog = r#"[{ "role": "assistant", "content": [
//!     { "type": "tool_use", "id": "1", "name": "final_answer", "input": { "verdict": "merge" } }] }]"#;
//! let dialog = Dialog::parse(&Source::new("dialog.json", dialog))?;
//! let answer = extract(&dialog, Some(&schema)).expect("an answer");
//! assert_eq!(answer.text, r#"{"verdict":"merge"}"#);
//! # Ok::<(), rehearse_document::Diagnostics>(())
//! ```

mod answer;
mod definition;
mod dialog;
mod message;
mod schema;
mod source;
#[cfg(test)]
mod tests;

use serde_json::Value as Json;

pub use answer::{Answer, AnswerError, Location, Violation};
pub use definition::{DESCRIPTION, NAME, Shape};
pub use dialog::{Arguments, Call, Dialog, Turn, TurnItem};
pub use schema::AnswerSchema;

use rehearse_document::{Node, Source, Value, json};

/// The answer of a dialog.
///
/// With a schema, it is the arguments of `final_answer` in the last turn of the assistant that calls it. Of several calls
/// in that turn, the first one with readable arguments is used and checked against the schema; calls of other tools are
/// ignored. Without a schema, it is the last text of the assistant: all text blocks of a message, each on its own lines.
///
/// # Errors
/// Why there is no answer, and where in the dialog.
pub fn extract(dialog: &Dialog, schema: Option<&AnswerSchema>) -> Result<Answer, AnswerError> {
    match schema {
        Some(schema) => structured(dialog, schema),
        None => text(dialog),
    }
}

fn structured(dialog: &Dialog, schema: &AnswerSchema) -> Result<Answer, AnswerError> {
    let calls = dialog.turns.iter().rev().map(|turn| turn.calls_of(NAME).collect::<Vec<_>>());
    let Some(calls) = calls.into_iter().find(|calls| !calls.is_empty()) else {
        return Err(AnswerError::NotCalled { hint: dialog.not_called_hint() });
    };
    let mut unreadable = None;
    for (index, call) in calls.iter().enumerate() {
        match ParsedArguments::read(call) {
            Ok(parsed) => {
                let violations = parsed.violations(call, schema);
                if !violations.is_empty() {
                    return Err(AnswerError::Mismatch { at: call.at.clone(), violations });
                }
                let others = calls.iter().enumerate().filter(|(other, _)| *other != index);
                let ignored_calls = others.map(|(_, call)| call.at.clone()).collect();
                return Ok(Answer::structured(parsed.node.to_raw(), call.at.clone(), ignored_calls));
            }
            Err(error) => drop(unreadable.get_or_insert(error)),
        }
    }
    Err(unreadable.unwrap_or(AnswerError::NotCalled { hint: None }))
}

fn text(dialog: &Dialog) -> Result<Answer, AnswerError> {
    let last = dialog.turns.iter().rev().find_map(|turn| {
        let texts: Vec<_> = turn.texts().filter(|(text, _)| !text.trim().is_empty()).collect();
        let (_, at) = texts.first()?;
        let text = texts.iter().map(|(text, _)| *text).collect::<Vec<_>>().join("\n");
        Some(Answer::text(text, (*at).clone()))
    });
    let is_called = dialog.turns.iter().any(|turn| turn.calls_of(NAME).next().is_some());
    last.ok_or_else(|| AnswerError::NoText { hint: is_called.then(|| format!("{NAME} is called: give its schema")) })
}

/// The first number that JSON parsers cannot represent.
fn too_large_number(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Number(text) => serde_json::from_str::<Json>(text).is_err().then_some(text),
        Value::Sequence(items) => items.iter().find_map(too_large_number),
        Value::Mapping(entries) => entries.iter().find_map(|entry| too_large_number(&entry.node)),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// The parsed arguments of a call.
struct ParsedArguments {
    node: Node,
    value: Json,
    /// Whether the spans of the node are those of the dialog.
    is_in_place: bool,
}

impl ParsedArguments {
    fn read(call: &Call) -> Result<ParsedArguments, AnswerError> {
        let unreadable = |why: String| AnswerError::Unreadable { at: call.at.clone(), why };
        let node = match &call.arguments {
            Arguments::Missing => return Err(AnswerError::Empty { at: call.at.clone() }),
            Arguments::Text(text) if matches!(text.trim(), "" | "null") => {
                return Err(AnswerError::Empty { at: call.at.clone() });
            }
            Arguments::Value(node) => match too_large_number(node) {
                Some(number) => return Err(unreadable(format!("the number {number} is too large"))),
                None => node.clone(),
            },
            Arguments::Text(text) => {
                // `json::parse` accepts more than JSON.
                serde_json::from_str::<Json>(text).map_err(|error| unreadable(error.to_string()))?;
                let read = json::parse(&Source::new(NAME, text.as_str()));
                read.map_err(|problems| unreadable(problems.0[0].message.to_string()))?.root
            }
        };
        Ok(ParsedArguments { value: node.to_json(), node, is_in_place: matches!(call.arguments, Arguments::Value(_)) })
    }

    fn violations(&self, call: &Call, schema: &AnswerSchema) -> Vec<Violation> {
        let place = |pointer: &str| match self.node.pointer(pointer).filter(|_| self.is_in_place) {
            Some(node) => Location { pointer: format!("{}{pointer}", call.at.pointer), span: node.span },
            None => call.at.clone(),
        };
        let found = schema.violations(&self.value).into_iter();
        found.map(|mismatch| Violation { at: place(&mismatch.pointer), mismatch }).collect()
    }
}
