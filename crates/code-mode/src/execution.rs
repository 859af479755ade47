//! What becomes of a program.

use rehearse_system::process::exit_signal;
use std::{process::ExitStatus, time::Duration};

use serde_json::{Map, Value, json};

/// A tool call of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: String,
    /// Not checked against the schema of the tool.
    pub arguments: Map<String, Value>,
}

/// Why a tool call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The program gets this as an exception or an error: the call is refused, or the server answered with an error.
    #[error("{0}")]
    Failed(String),
    /// The program is killed: it makes no sense to go on. [`ProgramEnd::Fatal`] has the message.
    #[error("{0}")]
    Fatal(String),
}

/// The limits of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the start of the program, without its compilation.
    pub time: Duration,
    /// How long it may take to end after that.
    pub grace: Duration,
    /// In bytes.
    pub memory: usize,
    /// What it prints, in bytes; the rest is lost.
    pub output: usize,
    /// The content that it returns, and the arguments of one call, in bytes.
    pub message: usize,
    /// Tool calls at once; more of them wait.
    pub calls: usize,
}

impl Limits {
    /// 5 s to end, 256 MiB of memory, 256 KiB of output, 8 MiB for a message, and 32 calls at once.
    pub fn new(time: Duration) -> Limits {
        let mib = 1024 * 1024;
        Limits { time, grace: Duration::from_secs(5), memory: 256 * mib, output: mib / 4, message: 8 * mib, calls: 32 }
    }
}

/// How a program ended. All but [`ProgramEnd::Fatal`] are for the model: an ordinary result of the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Success,
    /// It threw, or returned an error.
    Exception(String),
    /// It is not a program; it did not run.
    CompileError(String),
    /// It was stopped at its limit of time; with the place, if that is known.
    TimedOut(Option<String>),
    /// Its process ended in another way.
    Crashed(String),
    /// A tool call failed in a way that ends the run of the agent.
    Fatal(String),
}

/// A program that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub outcome: ProgramEnd,
    /// What it printed.
    pub output: String,
    /// What it returned, as content blocks of MCP; empty unless it succeeded.
    pub content: Vec<Value>,
    /// The limit of time, for the message.
    pub(crate) time: Duration,
}

/// Why there is no [`Execution`].
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The process for the program cannot be started.
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: std::io::Error },
    /// The files of the program cannot be written.
    #[error("cannot write the program: {0}")]
    Files(#[source] std::io::Error),
}

impl ProgramEnd {
    /// Of a process that ended without a last message.
    pub(crate) fn crashed(status: Option<ExitStatus>) -> ProgramEnd {
        ProgramEnd::Crashed(match status.map(|status| (status.code(), exit_signal(status))) {
            Some((Some(code), _)) => format!("the program ended with exit code {code}"),
            Some((None, Some(signal))) => format!("the program was killed by signal {signal}"),
            _ => "the program closed its output and was killed".to_owned(),
        })
    }
}

impl Execution {
    /// The text for the model, before the content: what was printed, and how the program ended unless it succeeded.
    pub fn text(&self) -> String {
        let output = &self.output;
        match &self.outcome {
            ProgramEnd::Success => output.clone(),
            ProgramEnd::Exception(message) => format!("{output}\nexecution error: {message}"),
            ProgramEnd::CompileError(message) => message.clone(),
            ProgramEnd::TimedOut(place) => {
                let place = place.as_ref().map(|place| format!("\n{place}")).unwrap_or_default();
                format!("{output}\nexecution timed out after {} s{place}", self.time.as_secs_f64())
            }
            ProgramEnd::Crashed(how) => format!("{output}\n{how}"),
            ProgramEnd::Fatal(message) if output.is_empty() => format!("fatal execution error: {message}"),
            ProgramEnd::Fatal(message) => format!("fatal execution error: {output}\n{message}"),
        }
    }

    /// The content blocks for the model: the text, then what the program returned. There is at least one.
    pub fn blocks(&self) -> Vec<Value> {
        let text = self.text();
        let mut blocks = Vec::new();
        if !text.is_empty() || self.content.is_empty() {
            blocks.push(json!({ "type": "text", "text": text }));
        }
        blocks.extend(self.content.iter().cloned());
        blocks
    }
}

/// What a program gets for the result of a call: the structured content of a tool that has a schema for it, else text.
///
/// # Errors
/// The tool reported an error, or its result is not what it should be.
pub(crate) fn value_of(result: &Value, is_structured: bool) -> Result<Value, CallError> {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten().map(|block| match block.get("text").and_then(Value::as_str) {
        Some(text) if block.get("type").is_some_and(|kind| kind == "text") => text.to_owned(),
        // A program can parse it, or return it as it is.
        _ => block.to_string(),
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(CallError::Failed(text));
    }
    match result.get("structuredContent").filter(|_| is_structured) {
        Some(structured) => Ok(structured.clone()),
        // Servers from before structured content have its JSON as text.
        None if is_structured => serde_json::from_str(&text)
            .map_err(|_| CallError::Failed(format!("the tool has an output schema, but its result is text: {text}"))),
        None => Ok(Value::from(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: ProgramEnd, output: &str, content: &[Value]) -> Execution {
        Execution { outcome, output: output.to_owned(), content: content.to_vec(), time: Duration::from_secs(2) }
    }

    #[test]
    fn the_output_is_before_the_content_and_there_is_always_a_block() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let blocks = |output: &str, content: &[Value]| ended(ProgramEnd::Success, output, content).blocks();
        assert_eq!(blocks("a\n", std::slice::from_ref(&image)), [text("a\n"), image.clone()]);
        assert_eq!(blocks("", std::slice::from_ref(&image)), [image]);
        assert_eq!(blocks("", &[]), [text("")]);
    }

    #[test]
    fn a_text_says_how_the_program_ended() {
        let text = |outcome| ended(outcome, "out", &[]).text();
        assert_eq!(text(ProgramEnd::Exception("no".into())), "out\nexecution error: no");
        assert_eq!(text(ProgramEnd::CompileError("./run.go:1: no".into())), "./run.go:1: no");
        assert_eq!(text(ProgramEnd::TimedOut(Some("at 3".into()))), "out\nexecution timed out after 2 s\nat 3");
        assert_eq!(text(ProgramEnd::Fatal("gone".into())), "fatal execution error: out\ngone");
    }

    #[test]
    fn a_result_is_structured_if_the_tool_says_so_and_text_otherwise() {
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let result = json!({ "content": [{ "type": "text", "text": "{\"n\":1}" }], "structuredContent": { "n": 2 } });
        assert_eq!(value_of(&result, true), Ok(json!({ "n": 2 })));
        assert_eq!(value_of(&result, false), Ok(json!("{\"n\":1}")));
        let old = json!({ "content": [{ "type": "text", "text": "{\"n\":1}" }] });
        assert_eq!(value_of(&old, true), Ok(json!({ "n": 1 })));
        let mixed = json!({ "content": [{ "type": "text", "text": "a" }, image] });
        assert_eq!(value_of(&mixed, false), Ok(json!(format!("a\n{image}"))));
        assert!(value_of(&mixed, true).is_err_and(|error| error.to_string().contains("output schema")));
        assert_eq!(
            value_of(&json!({ "content": [{ "type": "text", "text": "a" }], "isError": true }), true),
            Err(CallError::Failed("a".into()))
        );
    }
}
