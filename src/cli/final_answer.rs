//! `rehearse final-answer`: extracts the answer of a subagent from its transcript.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Exit, Failure, Format, input, output,
    style::{self, BAD, DIM, STRONG, printable},
};
use rehearse_document::{Diagnostics, Source};
use rehearse_llm::final_answer::{Answer, AnswerError, AnswerSchema, Dialog, Location, NAME, Shape, extract};
use rehearse_report::text::printable_lines;

const EXAMPLES: &str = "\
Examples:
  rehearse final-answer dialog.json --schema review.schema.json
  rehearse final-answer response.json --schema review.schema.json --format json
  rehearse final-answer - < dialog.json                        the last text of the assistant
  rehearse final-answer --tool openai --schema review.schema.json

A dialog is an array of Anthropic or OpenAI messages, a request with such an array, or a response. With a schema, the \
answer is the arguments of the last `final_answer` call, which must match; without one, it is the last text of the \
assistant. The answer goes to standard output, errors go to standard error; with --format json both go to standard output.

Exit codes:
  0  a valid answer
  1  no valid answer
  2  the dialog or the schema cannot be read; or wrong usage
  3  the answer cannot be written";

/// Extract and validate the final answer from a model's transcript
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FinalAnswerArgs {
    /// The transcript, a JSON file; - for standard input
    #[arg(required_unless_present = "tool")]
    dialog: Option<PathBuf>,
    /// The JSON Schema of the answer
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Output format: human or json
    #[arg(long, value_enum, default_value_t = Format::Human, hide_possible_values = true)]
    format: Format,
    /// Print the definition of the tool `final_answer` for a provider: anthropic or openai
    #[arg(long, value_name = "PROVIDER", hide_possible_values = true, requires = "schema", conflicts_with_all = ["dialog", "format"])]
    tool: Option<Provider>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Provider {
    /// The Messages API
    Anthropic,
    /// The Chat Completions API
    Openai,
}

pub(super) fn run(args: &FinalAnswerArgs) -> Result<Exit, Failure> {
    let schema = match &args.schema {
        Some(path) => Some(AnswerSchema::parse(&input::read(path)?).map_err(unreadable)?),
        None => None,
    };
    if let (Some(provider), Some(schema)) = (args.tool, &schema) {
        let shape = match provider {
            Provider::Anthropic => Shape::Anthropic,
            Provider::Openai => Shape::OpenAi,
        };
        output::write(format!("{:#}\n", schema.definition(shape)).as_bytes())?;
        return Ok(Exit::Success);
    }
    let source = input::read(args.dialog.as_deref().unwrap_or(Path::new("-")))?;
    let outcome = extract(&Dialog::parse(&source).map_err(unreadable)?, schema.as_ref());
    match args.format {
        Format::Human => print_outcome(&outcome, &source)?,
        Format::Json => {
            let text = serde_json::to_string_pretty(&Report::new(&outcome, &source));
            output::write(format!("{}\n", text.unwrap_or_default()).as_bytes())?;
        }
    }
    Ok(if outcome.is_ok() { Exit::Success } else { Exit::Violation })
}

/// Omits the source text: it is often one long line, and may contain what a tool has read.
fn unreadable(diagnostics: Diagnostics) -> Failure {
    Failure::Usage(diagnostics.to_string())
}

fn print_outcome(outcome: &Result<Answer, AnswerError>, source: &Source) -> Result<(), Failure> {
    let place = |at: &Location| {
        let (line, column) = source.position(at.span.start);
        printable(&format!("{}:{line}:{column}", source.name)).into_owned()
    };
    match outcome {
        Ok(answer) => {
            let text = match io::stdout().is_terminal() {
                true => printable_lines(&answer.text).map(|line| line + "\n").collect(),
                false => format!("{}\n", answer.text),
            };
            output::write(text.as_bytes())?;
            if !answer.ignored_calls.is_empty() {
                let calls = answer.ignored_calls.len() + 1;
                let at = place(&answer.at);
                style::print(&format!("{STRONG}info:{STRONG:#} {calls} calls of {NAME}; the one at {at} is used\n"));
            }
        }
        Err(error) => {
            let message = error.to_string();
            let first = printable(message.lines().next().unwrap_or_default()).into_owned();
            let at = error.at().map(|at| format!("{}: ", place(at))).unwrap_or_default();
            let mut text = format!("{BAD}error:{BAD:#} {at}{first}\n");
            for violation in error.violations() {
                // A JSON string has no inner locations.
                let at = Some(&violation.at).filter(|at| Some(*at) != error.at());
                let at = at.map(|at| format!("  {DIM}{}{DIM:#}", place(at))).unwrap_or_default();
                text.push_str(&format!("  {}{at}\n", printable(&violation.mismatch.to_string())));
            }
            if let Some(hint) = error.hint() {
                text.push_str(&format!("{STRONG}hint:{STRONG:#} {}\n", printable(hint)));
            }
            style::print(&text);
        }
    }
    Ok(())
}

/// The report as JSON. `result` is the result of the MCP tool that ran the subagent.
#[derive(Serialize)]
#[serde(untagged)]
enum Report<'a> {
    #[serde(rename_all = "camelCase")]
    Answer {
        answer: Option<&'a RawValue>,
        text: &'a str,
        at: Position<'a>,
        passed_over: Vec<Position<'a>>,
        result: Box<RawValue>,
    },
    Error {
        error: ErrorReport<'a>,
        result: Box<RawValue>,
    },
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    kind: &'static str,
    message: String,
    hint: Option<&'a str>,
    at: Option<Position<'a>>,
    violations: Vec<ViolationReport<'a>>,
}

#[derive(Serialize)]
struct ViolationReport<'a> {
    /// JSON pointer into the answer.
    path: &'a str,
    message: &'a str,
    at: Position<'a>,
}

/// A value of the dialog.
#[derive(Serialize)]
struct Position<'a> {
    pointer: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Report<'a> {
    fn new(outcome: &'a Result<Answer, AnswerError>, source: &Source) -> Report<'a> {
        let position = |at: &'a Location| {
            let (line, column) = source.position(at.span.start);
            Position { pointer: &at.pointer, line, column }
        };
        match outcome {
            Ok(answer) => Report::Answer {
                answer: answer.structured.as_deref(),
                text: &answer.text,
                at: position(&answer.at),
                passed_over: answer.ignored_calls.iter().map(position).collect(),
                result: answer.to_tool_result(),
            },
            Err(error) => {
                let violations = error.violations().iter().map(|violation| ViolationReport {
                    path: &violation.mismatch.pointer,
                    message: &violation.mismatch.message,
                    at: position(&violation.at),
                });
                let violations = violations.collect();
                let (kind, message, hint) = (error.kind(), error.to_string(), error.hint());
                let at = error.at().map(position);
                let error_report = ErrorReport { kind, message, hint, at, violations };
                Report::Error { error: error_report, result: error.to_tool_result() }
            }
        }
    }
}
