//! Says whether the outcome of a request is wrong.

use std::{sync::LazyLock, time::Duration};

use regex::Regex;
use serde_json::{
    Map, Value as Json,
    value::{RawValue, to_raw_value},
};

use crate::{private::Private, target::Target};
use rehearse_client::{Failure, check_item};
use rehearse_document::text::shortened;
use rehearse_protocol::{
    List, RpcError,
    message::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR},
};
use rehearse_report::fuzz::{Oracle, TargetKind};

/// How much of a text is quoted.
const QUOTED: usize = 160;
/// A shorter text of an input is not looked for in a message.
const SHORTEST_ECHO: usize = 3;
/// The most completions of an answer (2026-07-28, Completion: Completion Results).
const COMPLETIONS: usize = 100;

/// A stack trace, in the words of the usual languages.
static STACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?m)Traceback \(most recent call last\)|^\s+at .+\(.+:\d+:\d+\)|^\s+at .+:\d+:\d+$|File ".+", line \d+, in |^goroutine \d+ \[|panicked at .+:\d+|^\s+at [\w.$]+\([\w]+\.java:\d+\)|\.rb:\d+:in "#,
    )
    .ok()
});
/// A line of a stack trace that names a function or a place.
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?m)^\s*(?:at .+|File ".+", line \d+.*|\S+\.rb:\d+:in .+|goroutine \d+ \[.*|.*panicked at .+)$"#).ok()
});
/// What the frames of libraries have.
const LIBRARIES: [&str; 8] =
    ["site-packages", "dist-packages", "/lib/python", "<frozen ", "node_modules", "node:", "<anonymous>", "/rustc/"];
/// How a process ended: the rest of the words for a crash depend on what is seen of it first.
static EXIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:exit status|signal): .+").ok());
/// The text of an exception: its class, or what an engine says of a mistake in a program.
pub(crate) const EXCEPTION: &str = r"\b[A-Z][A-Za-z]+(?:Error|Exception): |(?:read|set) propert(?:y|ies) .*of (?:undefined|null)|(?:undefined|null) (?:to object|is not)|is not (?:a function|iterable|subscriptable|callable)\b|'NoneType' object|unsupported operand type|index out of (?:range|bounds)|(?:division|modulo|divide) by zero|recursion depth exceeded|Maximum call stack|nil pointer dereference|Object reference not set";
static EXCEPTIONS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(EXCEPTION).ok());
/// How an error says that the arguments are wrong.
static REFUSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)-32602|validation ?error|invalid (?:arguments?|params|parameters?|inputs?)|does not match the schema",
    )
    .ok()
});
/// What is different each time, in the shape of a message.
static VARYING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#""(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|0x[0-9a-fA-F]+|\d+(?:\.\d+)?"#).ok());

/// What came back: the result as it came, or why there is none.
pub(crate) type Outcome = Result<Box<RawValue>, Failure>;

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
        Wrong { oracle, shape: shape(&message), message }
    }

    /// A message of the server, whose shape is its kind of exception, or the message without what was sent.
    fn quoting(oracle: Oracle, message: String, said: &str, expected: &Expected<'_>) -> Wrong {
        if let Some(exception) = EXCEPTIONS.as_ref().and_then(|it| it.find(said)) {
            return Wrong { oracle, message, shape: exception.as_str().to_owned() };
        }
        let texts = expected.params.values().map(texts_of).collect::<Vec<_>>().join("\n");
        let mut texts: Vec<_> = texts.lines().filter(|text| text.len() >= SHORTEST_ECHO).collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let without = texts.into_iter().fold(said.to_owned(), |said, text| said.replace(text, "…"));
        Wrong { oracle, message, shape: shape(&without) }
    }
}

/// The line of a stack trace that says what happened, and the shape of the trace: its kind of exception and its frames in
/// the program itself, because where in a library it ends depends on the value.
fn stack(text: &str) -> (&str, String) {
    let is_frame = |line: &str| FRAME.as_ref().is_some_and(|it| it.is_match(line));
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.iter().position(|line| is_frame(line)).unwrap_or_default();
    let last = lines.iter().rposition(|line| is_frame(line)).unwrap_or_default();
    let below = lines[(last + 1).min(lines.len())..].iter().find(|line| !line.starts_with([' ', '\t']));
    let above = first.checked_sub(1).map(|above| &lines[above]);
    // Python and Rust say it below the frames, others above them.
    let is_below = text.contains("Traceback (most recent") || text.contains("panicked at ") || above.is_none();
    let said = if is_below { below.or(above) } else { above }.or(lines.last()).map_or("", |line| line.trim());
    let is_own = |line: &&&str| !LIBRARIES.iter().any(|library| line.contains(library));
    let all: Vec<_> = lines.iter().filter(|line| is_frame(line)).collect();
    let own: Vec<_> = all.iter().copied().filter(is_own).collect();
    let frames = if own.is_empty() { all } else { own };
    let mut frames: Vec<_> = frames.iter().map(|line| shape(line.trim())).collect();
    frames.dedup();
    let kind = said.split_once(':').map_or(said, |(kind, _)| kind);
    (said, format!("{} {}", shape(kind), frames.join("\n")))
}

/// A message without what is different each time.
fn shape(message: &str) -> String {
    VARYING.as_ref().map_or_else(|| message.to_owned(), |it| it.replace_all(message, "…").into_owned())
}

/// What kind of answer it is: the same for answers that differ only in values.
pub(crate) fn shape_of(outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => {
            let result = parsed(result.get());
            let mut members: Vec<_> = result.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect();
            members.sort();
            let types = result["content"].as_array().into_iter().flatten().map(|it| it["type"].to_string());
            let text = if result["isError"] == true { shape(&texts_of(&result["content"])) } else { String::new() };
            format!("{} {} {text}", members.join(" "), types.collect::<Vec<_>>().join(" "))
        }
        Err(Failure::Rpc(error)) => format!("{} {}", error.code, shape(&error.message)),
        Err(failure) => failure.kind().to_owned(),
    }
}

/// What the oracles know of a request.
pub(crate) struct Expected<'t> {
    pub(crate) target: &'t Target,
    /// Whether the server declares that the input is right.
    pub(crate) is_valid: Option<bool>,
    /// How long the request may take.
    pub(crate) limit: Duration,
    /// What was sent: it is no secret of the server.
    pub(crate) params: &'t Map<String, Json>,
    pub(crate) private: Option<&'t Private>,
}

/// Whether there is a result without an error.
pub(crate) fn is_accepted(outcome: &Outcome) -> bool {
    outcome.as_ref().is_ok_and(|result| parsed(result.get())["isError"] != true)
}

/// Whether an error says that the arguments are wrong.
pub(crate) fn is_refused(outcome: &Outcome) -> bool {
    let said = match outcome {
        Ok(result) => texts_of(&parsed(result.get())["content"]),
        Err(Failure::Rpc(error)) if error.code == INVALID_PARAMS => return true,
        Err(Failure::Rpc(error)) => error.message.clone(),
        Err(_) => return false,
    };
    REFUSED.as_ref().is_some_and(|it| it.is_match(&said))
}

fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}

/// What is wrong with the outcome of a request; the worst comes first.
pub(crate) fn judge(outcome: &Outcome, expected: &Expected<'_>) -> Option<Wrong> {
    match outcome {
        Err(Failure::Disconnected { detail }) => {
            let message = format!("The connection ended before the answer: {detail}.");
            let how = EXIT.as_ref().and_then(|it| it.find(detail)).map_or("", |it| it.as_str());
            Some(Wrong { oracle: Oracle::Crash, shape: shape(how), message })
        }
        Err(Failure::Timeout(_)) => {
            let limit = expected.limit.as_secs_f64();
            Some(Wrong::new(
                Oracle::Hang,
                format!("No answer came within {limit:.1} s, and other requests were answered at once."),
            ))
        }
        Err(Failure::Malformed(why)) => Some(Wrong::new(Oracle::Malformed, format!("The answer is invalid: {why}."))),
        Err(Failure::Http { status, .. }) if *status >= 500 => {
            Some(Wrong::new(Oracle::InternalError, format!("The HTTP status is {status}, and there is no answer.")))
        }
        Err(Failure::Rpc(error)) => of_error(error, expected),
        Ok(result) => of_result(&parsed(result.get()), expected),
        Err(_) => None,
    }
}

fn of_error(error: &RpcError, expected: &Expected<'_>) -> Option<Wrong> {
    let data = error.data.as_ref().map(|data| texts_of(&parsed(data.get()))).unwrap_or_default();
    let said = format!("{}\n{data}", error.message);
    if let Some(wrong) = leak(&said, expected).or_else(|| private(&said, expected)) {
        return Some(wrong);
    }
    let text = shortened(&error.message, QUOTED);
    let kind = expected.target.id.kind;
    // How arguments are refused that are no object is the work of an SDK.
    if expected.params.get("arguments").is_some_and(|arguments| !arguments.is_object()) {
        return None;
    }
    let says = match error.code {
        INTERNAL_ERROR if is_uri(expected) => {
            let right = match kind {
                TargetKind::Tool => "an error of a tool belongs in its result",
                _ => "an input that the server cannot use is refused with another error, such as -32602",
            };
            let message = format!("The answer is the protocol error -32603 ({text}); {right}.");
            return Some(Wrong::quoting(Oracle::InternalError, message, &error.message, expected));
        }
        INVALID_PARAMS if kind == TargetKind::Tool && expected.is_valid == Some(true) => {
            let message = format!("The schema accepts the arguments, and the server refuses them: {text}.");
            return Some(Wrong::quoting(Oracle::ValidRefused, message, &error.message, expected));
        }
        // -32600 is also the answer to a client that lacks a capability.
        PARSE_ERROR => "the message is not JSON",
        // A server may complete only some arguments (2026-07-28, Completion: Error Handling).
        METHOD_NOT_FOUND if kind != TargetKind::Completion => "the method does not exist",
        _ => return None,
    };
    let message = format!("The error {} ({text}) says that {says}, and that is not so.", error.code);
    Some(Wrong::quoting(Oracle::WrongError, message, &error.message, expected))
}

/// Whether no resource is asked for by what is no URI: how SDKs refuse that is not the work of the server.
fn is_uri(expected: &Expected<'_>) -> bool {
    let scheme = expected.params.get("uri").and_then(|uri| Some(uri.as_str()?.split_once(':')?.0));
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    !expected.params.contains_key("uri")
        || scheme.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_alphabetic()) && it.chars().all(of_scheme))
}

fn of_result(result: &Json, expected: &Expected<'_>) -> Option<Wrong> {
    if let Some(why) = misshapen(result, expected.target) {
        return Some(Wrong::new(Oracle::Malformed, format!("The answer is invalid: {why}.")));
    }
    match expected.target.id.kind {
        TargetKind::Tool => of_tool(result, expected),
        // 2026-07-28, Prompts: Error Handling.
        TargetKind::Prompt if expected.is_valid == Some(false) => {
            let message = "A required argument is missing, and the prompt is made as if it were there.".to_owned();
            Some(Wrong::new(Oracle::InvalidAccepted, message))
        }
        _ => None,
    }
}

fn of_tool(result: &Json, expected: &Expected<'_>) -> Option<Wrong> {
    let texts = result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let said = texts.collect::<Vec<_>>().join("\n");
    if let Some(wrong) = leak(&said, expected) {
        return Some(wrong);
    }
    if result["isError"] == true {
        return private(&said, expected).or_else(|| exception(&said, expected));
    }
    if let Some(output) = &expected.target.output {
        let structured = &result["structuredContent"];
        if structured.is_null() {
            let message = "The tool has an output schema, and the result has no structured content.".to_owned();
            return Some(Wrong::new(Oracle::OutputSchema, message));
        }
        if let Some(error) = output.iter_errors(structured).next() {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            let what = shortened(&error.to_string(), QUOTED);
            let message = format!("The structured content does not match the output schema{at}: {what}.");
            let shape = error.schema_path().to_string();
            return Some(Wrong { oracle: Oracle::OutputSchema, message, shape });
        }
    }
    (expected.is_valid == Some(false)).then(|| {
        let message = "The schema refuses the arguments, and the tool answers as if they were right.".to_owned();
        Wrong::new(Oracle::InvalidAccepted, message)
    })
}

/// What is wrong with the shape of a list or of completions; the client has seen to the others.
fn misshapen(result: &Json, target: &Target) -> Option<String> {
    match target.id.kind {
        TargetKind::Completion => {
            let Some(values) = result["completion"]["values"].as_array() else {
                return Some("/completion/values is not an array".to_owned());
            };
            let is_text = values.iter().all(Json::is_string);
            (!is_text).then(|| "/completion/values has what is not a string".to_owned()).or_else(|| {
                let count = values.len();
                (count > COMPLETIONS).then(|| format!("/completion/values has {count} values, and 100 are allowed"))
            })
        }
        TargetKind::List => {
            let member = List::of_method(&target.id.name)?.member();
            let Some(items) = result[member].as_array() else { return Some(format!("/{member} is not an array")) };
            let cursor = &result["nextCursor"];
            if !cursor.is_null() && !cursor.is_string() {
                return Some("/nextCursor is not a string".to_owned());
            }
            let mut raw = items.iter().map(|item| to_raw_value(item).ok()).enumerate();
            raw.find_map(|(index, item)| Some(check_item(member, index, &item?).err()?.to_string()))
        }
        _ => None,
    }
}

/// The texts in a value, a line each.
fn texts_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(texts_of).collect::<Vec<_>>().join("\n"),
        Json::Object(members) => members.values().map(texts_of).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// A stack trace in a text.
fn leak(text: &str, expected: &Expected<'_>) -> Option<Wrong> {
    let found = STACK.as_ref()?.find(text)?;
    if expected.params.values().any(|sent| texts_of(sent).contains(found.as_str().trim())) {
        return None;
    }
    let (said, shape) = stack(text);
    let message = format!("The text has a stack trace: {}.", shortened(said, QUOTED));
    Some(Wrong { oracle: Oracle::StackTrace, message, shape })
}

/// The text of an exception, if the tool should have known what to do with the arguments.
fn exception(text: &str, expected: &Expected<'_>) -> Option<Wrong> {
    let is_refusal = REFUSED.as_ref().is_none_or(|it| it.is_match(text));
    let found = EXCEPTIONS.as_ref()?.find(text).filter(|_| expected.is_valid == Some(true) && !is_refusal)?;
    if expected.params.values().any(|sent| texts_of(sent).contains(found.as_str().trim())) {
        return None;
    }
    let line = text.lines().find(|line| line.contains(found.as_str())).unwrap_or(text).trim();
    let message =
        format!("The schema accepts the arguments, and the tool ends with an exception: {}.", shortened(line, QUOTED));
    Some(Wrong::quoting(Oracle::Exception, message, line, expected))
}

/// What an error says of the machine of the server.
fn private(text: &str, expected: &Expected<'_>) -> Option<Wrong> {
    let sent = expected.params.values().map(texts_of).collect::<Vec<_>>().join("\n");
    let message = expected.private?.found(text, &sent)?;
    let shape = message.split(':').next().unwrap_or_default().to_owned();
    Some(Wrong { oracle: Oracle::PrivateData, message, shape })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_trace_has_one_shape_for_one_cause() {
        let python = |value: &str, line: u32, class: &str| {
            format!(
                "Error: Traceback (most recent call last):\n  File \"/srv/a.py\", line 9, in call\n    return parse(x)\n  \
                 File \"/srv/a.py\", line {line}, in parse\n    int(x)\nvalidation.{class}: 1 error in {value}\nvalue\n  \
                 Not a number [input={value}]\n    See https://errors.example/{class}"
            )
        };
        let (one, other) = (python("ab", 3, "Invalid"), python("0x7f", 3, "Invalid"));
        assert_eq!(stack(&one).0, "validation.Invalid: 1 error in ab");
        assert_eq!(stack(&one).1, stack(&other).1);
        assert_ne!(stack(&one).1, stack(&python("ab", 3, "Missing")).1);
        let node = |value: &str, function: &str| {
            let own = format!("    at {function} (/srv/a.js:3:7)");
            format!("SyntaxError: Unexpected {value}\n    at {value} (/srv/node_modules/json/x.js:1:2)\n{own}")
        };
        assert_eq!(stack(&node("a", "f")), ("SyntaxError: Unexpected a", stack(&node("end", "f")).1));
        assert_ne!(stack(&node("a", "f")).1, stack(&node("a", "g")).1);
        let deep = |count: usize| format!("RangeError: x\n{}", "    at f (a.js:1:1)\n".repeat(count));
        assert_eq!(stack(&deep(2)).1, stack(&deep(5)).1);
        assert_eq!(stack("thread 'main' panicked at a.rs:3:4:\nno value\nnote: run").0, "no value");
        assert_eq!(stack("panic: nil\n\ngoroutine 1 [running]:\nmain.f()").0, "panic: nil");
    }
}
