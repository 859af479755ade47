//! One event as JSON, and as text for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rehearse_llm::{
    final_answer,
    model::{Usage, text_of},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use crate::{Event, RunLabel};

/// The tools that run a program of the model.
const CODE_TOOLS: &[&str] = &["execute_go_code", "execute_code"];

/// The type of thoughts that only the provider can read.
const ENCRYPTED: &str = "reasoning.encrypted";

/// How many lines of a thought the concise form has.
const MAX_THOUGHT_LINES: usize = 2;

/// The kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    ToolCall,
    ToolResult,
    ThoughtTrace,
    #[default]
    SubagentStart,
    SubagentEnd,
    /// A kind of a later version, which people do not see.
    #[serde(other)]
    Unknown,
}

/// An event as it is sent. Both spellings of the ids are read: `subagentRunId` and `subagentRunID`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRecord {
    pub subagent_name: String,
    #[serde(alias = "subagentRunID")]
    pub subagent_run_id: String,
    /// RFC 3339; milliseconds since 1970 are read, too.
    #[serde(deserialize_with = "timestamp")]
    pub timestamp: String,
    #[serde(rename = "type")]
    pub kind: EventKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_name: String,
    #[serde(default, alias = "toolCallID", skip_serializing_if = "String::is_empty")]
    pub tool_call_id: String,
    /// The arguments, the result, the thought, or the error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub payload: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_usage: Option<Usage>,
}

/// How much of an event people see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One line for a call and a result.
    #[default]
    Concise,
    /// With arguments and results.
    Verbose,
}

impl EventRecord {
    /// The event of a run; `None` for events that are not sent: the answer, and calls whose arguments are no JSON.
    pub fn new(run: &RunLabel, event: &Event<'_>, now: SystemTime) -> Option<EventRecord> {
        let record = EventRecord {
            subagent_name: run.agent.to_string(),
            subagent_run_id: run.run_id.to_string(),
            timestamp: humantime::format_rfc3339_millis(now).to_string(),
            ..EventRecord::default()
        };
        Some(match event {
            Event::Started => record,
            Event::Thought { text, is_encrypted } => EventRecord {
                kind: EventKind::ThoughtTrace,
                payload: (*text).to_owned(),
                reasoning_type: if *is_encrypted { ENCRYPTED.to_owned() } else { String::new() },
                ..record
            },
            Event::ToolCall { call, timeout } if call.name != final_answer::NAME => {
                let arguments: Json = serde_json::from_str(&call.arguments).ok()?;
                let is_code = CODE_TOOLS.contains(&call.name.as_str());
                let program = arguments.get("code").and_then(Json::as_str).filter(|_| is_code);
                EventRecord {
                    kind: EventKind::ToolCall,
                    tool_name: call.name.clone(),
                    tool_call_id: call.id.clone(),
                    payload: program.unwrap_or(&call.arguments).to_owned(),
                    execution_timeout_seconds: timeout.map(|limit| limit.as_secs()),
                    ..record
                }
            }
            Event::ToolResult(result) if result.tool != final_answer::NAME => EventRecord {
                kind: EventKind::ToolResult,
                tool_name: result.tool.clone(),
                tool_call_id: result.call_id.clone(),
                payload: text_of(&result.content),
                ..record
            },
            Event::Ended { error, .. } => {
                EventRecord { kind: EventKind::SubagentEnd, payload: error.unwrap_or_default().to_owned(), ..record }
            }
            _ => return None,
        })
    }

    /// The event for people; `None` for those that they do not need. With `shows_run`, the id of the run tells several
    /// runs apart.
    pub fn text(&self, form: Form, shows_run: bool) -> Option<String> {
        let run = if shows_run { format!(" [{}]", self.subagent_run_id) } else { String::new() };
        let head = format!("#### {}{run}", self.subagent_name);
        let tool = if self.tool_name.is_empty() { "unknown" } else { &self.tool_name };
        let is_code = CODE_TOOLS.contains(&tool);
        let limit = self.execution_timeout_seconds.or(is_code.then_some(0));
        let limit = limit.map(|seconds| format!(" (timeout: {seconds}s)")).unwrap_or_default();
        Some(match (self.kind, form) {
            (EventKind::ToolCall, Form::Concise) => format!("{head} → {tool}\n"),
            (EventKind::ToolCall, Form::Verbose) => {
                let language = match tool {
                    "execute_code" => "js",
                    _ if is_code => "go",
                    _ => "json",
                };
                let (name, shown) = match is_code {
                    true => (String::new(), self.payload.clone()),
                    false => (format!(" {tool}"), indented(&self.payload)),
                };
                format!("{head} [tool call]{name}{limit}\n```{language}\n{}\n```\n", shown.trim_end())
            }
            (EventKind::ToolResult, Form::Concise) => format!("{head} ✓ {tool}\n"),
            (EventKind::ToolResult, Form::Verbose) if is_code => {
                format!("{head} Code execution output:\n```shell\n{}\n```\n", self.payload)
            }
            (EventKind::ToolResult, Form::Verbose) => {
                format!("{head} Tool \"{tool}\" result:\n```shell\n{}\n```\n", self.payload)
            }
            (EventKind::ThoughtTrace, _) if self.reasoning_type == ENCRYPTED => {
                format!("{head} thought trace\n[Reasoning content is encrypted]\n")
            }
            (EventKind::ThoughtTrace, Form::Concise) => {
                let mut lines = self.payload.lines();
                let first: Vec<_> = lines.by_ref().take(MAX_THOUGHT_LINES).collect();
                let more = if lines.next().is_some() { "\n..." } else { "" };
                format!("{head} thought trace\n{}{more}\n", first.join("\n"))
            }
            (EventKind::ThoughtTrace, Form::Verbose) => format!("{head} thought trace\n{}\n", self.payload),
            (EventKind::SubagentStart | EventKind::SubagentEnd | EventKind::Unknown, _) => return None,
        })
    }
}

/// JSON with indentation; other text as it is.
fn indented(text: &str) -> String {
    serde_json::from_str::<Json>(text).map_or_else(|_| text.to_owned(), |json| format!("{json:#}"))
}

fn timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Json::deserialize(deserializer)? {
        Json::String(text) => text,
        Json::Number(number) => {
            let millis = number.as_u64().unwrap_or_default();
            humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
        }
        _ => return Err(serde::de::Error::custom("`timestamp` must be a string or a number")),
    })
}
