//! The expectations of a step.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value as Json;

use super::{
    agent_expectations::{AgentExpectations, Judge},
    limit::Limit,
};
use crate::{
    keys::KEYS,
    snapshot::{Observation, observation::StepOutcome},
};
use rehearse_client::{Failure, UnsolicitedFrame};
use rehearse_document::{Node, Problem, Problems, Value, matcher::Matcher, nearest, text::shortened};
use rehearse_protocol::message::{INTERNAL_ERROR, METHOD_NOT_FOUND, PARSE_ERROR};

/// How many characters of a result a message shows.
const EXCERPT: usize = 200;

/// The key `expect`. All expectations must hold; errors must be expected explicitly.
#[derive(Debug)]
pub struct Expectations {
    /// The joined text of all content blocks.
    text: Option<Matcher>,
    is_error: Option<ToolError>,
    /// Whether the server may also refuse the request.
    may_refuse: bool,
    structured: Option<Matcher>,
    content: Option<Matcher>,
    result: Option<Matcher>,
    /// Values at JSON pointers into the result.
    at: Vec<(String, Matcher)>,
    rpc_error: Option<Matcher>,
    failure: Option<Matcher>,
    notifications: Option<Matcher>,
    asked: Option<Matcher>,
    noise: Option<TextsExpectation>,
    /// How the structured content breaks the output schema of the tool.
    schema_errors: Option<TextsExpectation>,
    /// The statuses of a task.
    statuses: Option<Matcher>,
    status: Option<Matcher>,
    /// No response is expected.
    none: bool,
    /// The most bytes and tokens of the result.
    limits: Vec<Limit>,
    /// The longest time in a call without a report of progress.
    progress: Option<Duration>,
    /// What the run of an agent must be like.
    agent: Option<AgentExpectations>,
    /// What the model of a host must have seen of the tools.
    tools: Option<Matcher>,
}

/// Expected texts, such as unsolicited frames: log lines on standard output, responses without a request.
#[derive(Debug)]
enum TextsExpectation {
    /// At least one.
    Any,
    /// A matcher for the array of all texts.
    Matches(Matcher),
}

impl TextsExpectation {
    /// `true`, a matcher, or `false`, which is the default.
    fn read(node: &Node, key: &str, example: &str) -> Result<Option<TextsExpectation>, Problems> {
        match node.value {
            Value::Bool(is_expected) => Ok(is_expected.then_some(TextsExpectation::Any)),
            Value::Sequence(_) | Value::Mapping(_) => Ok(Some(TextsExpectation::Matches(Matcher::read(node)?))),
            _ => {
                let problem = node.problem(format!("`{key}` must be true or a matcher for an array of strings"));
                Err(problem.hint(format!("for example `{key}: {{ contains: {example} }}`")).into())
            }
        }
    }
}

/// Fields that only some steps have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObservableFields {
    /// The HTTP status of a raw frame.
    pub(crate) status: bool,
    /// The statuses of a task.
    pub(crate) task: bool,
    /// The progress of a call.
    pub(crate) progress: bool,
    /// A refusal by an error of the protocol, where a tool would report an error.
    pub(crate) refusal: bool,
    /// The run of an agent.
    pub(crate) agent: bool,
    /// The tools that the model of a host sees, and the calls of the host.
    pub(crate) host: bool,
}

/// Whether a tool may report an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToolError {
    Expected,
    Unexpected,
    /// It may or may not.
    Any,
}

impl ToolError {
    fn read(node: &Node) -> Result<ToolError, Problems> {
        match node.as_str() {
            Some("any") => Ok(ToolError::Any),
            _ => node.bool().map(|is_error| if is_error { ToolError::Expected } else { ToolError::Unexpected }),
        }
    }

    fn allows(self, is_error: bool) -> bool {
        self == ToolError::Any || is_error == (self == ToolError::Expected)
    }
}

impl Expectations {
    /// Reads the key `expect`.
    ///
    /// # Errors
    /// Every mistake, and expectations that the step can never meet.
    pub(crate) fn read(node: &Node, observable: ObservableFields) -> Result<Expectations, Problems> {
        let fields = KEYS.fields(node, "expect")?;
        if fields.is_empty() {
            return Err(node.problem("`expect` needs at least one expectation").hint("remove it").into());
        }
        let not_a_result = fields.at_most_one(&KEYS.choices("expect"))?;
        let of_result = KEYS.keys("ofResult").into_iter().find_map(|key| fields.entry(key));
        if let (Some(other), Some(entry)) = (not_a_result, of_result) {
            let message = format!("`{}` and `{}` exclude each other", entry.key, other.key);
            return Err(Problem::new(entry.key_span, message).into());
        }
        let special = [
            ("status", observable.status, "only `raw` has a `status`"),
            ("statuses", observable.task, "only a call with `task: true` has `statuses`"),
            ("progress", observable.progress, "only `call` and `cancel` without `task: true` have `progress`"),
            ("tools", observable.host, "only `host` has `tools`"),
        ];
        for (key, exists, message) in special {
            if let Some(entry) = fields.entry(key).filter(|_| !exists) {
                return Err(Problem::new(entry.key_span, message).into());
            }
        }
        let of_calls = KEYS.keys("ofCalls");
        for entry in KEYS.keys("ofAgent").into_iter().filter_map(|key| fields.entry(key)) {
            let is_of_host = of_calls.contains(&&*entry.key);
            if !(observable.agent || observable.host && is_of_host) {
                let who = if is_of_host { "only `agent` and `host` have" } else { "only `agent` has" };
                return Err(Problem::new(entry.key_span, format!("{who} `{}`", entry.key)).into());
            }
        }
        let matcher = |key: &str| fields.read(key, Matcher::read);
        let at = fields.get("at").map(Node::entries).transpose()?.unwrap_or_default();
        let at = at.iter().map(|entry| {
            if !entry.key.is_empty() && !entry.key.starts_with('/') {
                let problem = Problem::new(entry.key_span, "the keys of `at` must be JSON pointers into the result");
                return Err(problem.hint("for example /content/0/text").into());
            }
            Ok((entry.key.clone(), Matcher::read(&entry.node)?))
        });
        let limits = [fields.read("size", Limit::of_size)?, fields.read("tokens", Limit::of_tokens)?];
        let every = |node: &Node| KEYS.fields(node, "progress")?.required("every")?.duration();
        let is_error = fields.read("isError", ToolError::read)?;
        Ok(Expectations {
            text: matcher("text")?,
            is_error,
            may_refuse: is_error == Some(ToolError::Any) && observable.refusal,
            structured: matcher("structured")?,
            content: matcher("content")?,
            result: matcher("result")?,
            at: Problems::collect(at)?,
            rpc_error: matcher("rpcError")?,
            failure: fields.read("failure", read_failure)?,
            notifications: matcher("notifications")?,
            asked: matcher("asked")?,
            noise: fields.read("noise", |node| TextsExpectation::read(node, "noise", "Listening"))?.flatten(),
            schema_errors: fields
                .read("schemaErrors", |node| TextsExpectation::read(node, "schemaErrors", "{ matches: ^/city }"))?
                .flatten(),
            statuses: matcher("statuses")?,
            status: matcher("status")?,
            none: fields.read("none", Node::bool)?.unwrap_or(false),
            limits: limits.into_iter().flatten().collect(),
            progress: fields.read("progress", every)?,
            agent: AgentExpectations::read(node)?,
            tools: matcher("tools")?,
        })
    }

    /// The first expectation about the whole session, if there is one.
    pub(crate) fn session_key(&self) -> Option<&'static str> {
        let session_key = [
            ("notifications", self.notifications.is_some()),
            ("asked", self.asked.is_some()),
            ("noise", self.noise.is_some()),
            ("progress", self.progress.is_some()),
        ];
        session_key.into_iter().find(|(_, is_expected)| *is_expected).map(|(key, _)| key)
    }

    /// The model that grades the answer of an agent.
    pub(crate) fn judge(&self) -> Option<&Judge> {
        self.agent.as_ref()?.judge.as_ref()
    }

    /// The tools that an agent must call.
    pub(crate) fn expected_tools(&self) -> BTreeSet<&str> {
        self.agent.as_ref().map(AgentExpectations::expected_tools).unwrap_or_default()
    }

    /// The tools that the expectations of an agent name.
    pub(crate) fn named_tools(&self) -> BTreeSet<&str> {
        self.agent.as_ref().map(AgentExpectations::named_tools).unwrap_or_default()
    }

    /// Whether the requests of the server are checked.
    pub(crate) fn has_client_requests(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether unsolicited frames are expected.
    pub(crate) fn expects_unsolicited(&self) -> bool {
        self.noise.is_some()
    }

    /// Checks the unsolicited frames. Without an expectation each of them is a problem.
    pub(crate) fn check_unsolicited(expect: Option<&Expectations>, strays: &[UnsolicitedFrame]) -> Vec<String> {
        let mut found = Vec::new();
        match expect.and_then(|expect| expect.noise.as_ref()) {
            None => found.extend(strays.iter().map(|stray| format!("noise: {stray}"))),
            Some(TextsExpectation::Any) if strays.is_empty() => {
                found.push("noise: expected unsolicited output, found none".into())
            }
            Some(TextsExpectation::Any) => {}
            Some(TextsExpectation::Matches(matcher)) => {
                let text = |stray: &UnsolicitedFrame| match stray {
                    UnsolicitedFrame::NotAMessage { text, .. } => text.clone(),
                    stray => stray.to_string(),
                };
                let texts: Json = strays.iter().map(text).collect();
                mismatches("noise", matcher, Some(&texts), &mut found);
            }
        }
        found
    }

    /// Checks an observation and returns all differences. Anything but a successful result must be expected.
    pub fn check(expect: Option<&Expectations>, observation: &Observation) -> Vec<String> {
        let mut found = Vec::new();
        match &observation.outcome {
            StepOutcome::Result(result) => {
                let is_error = result.get("isError") == Some(&Json::Bool(true));
                let expects_failure = expect.is_some_and(Expectations::expects_failure);
                let allowed = expect.and_then(|expect| expect.is_error).unwrap_or(ToolError::Unexpected);
                if !expects_failure && !allowed.allows(is_error) {
                    found.push(match is_error {
                        true if observation.agent.is_some() => format!("the run has no answer: {}", texts(result)),
                        true => format!("the tool reports an error: {}", texts(result)),
                        false => format!("isError: expected true, found false; the result is {}", excerpt(result)),
                    });
                }
                if let Some(expect) = expect {
                    expect.check_result(result, &mut found);
                }
            }
            StepOutcome::Silence if expect.is_some_and(|expect| expect.none) => {}
            StepOutcome::Silence => found.push("no response arrived".into()),
            StepOutcome::Failed { kind, message, error } => {
                let rpc_error = expect.and_then(|expect| expect.rpc_error.as_ref());
                let failure = expect.and_then(|expect| expect.failure.as_ref());
                let may_refuse = expect.is_some_and(|expect| expect.may_refuse);
                match (rpc_error, failure, error) {
                    (None, None, Some(error)) if may_refuse && is_refusal(error) => {}
                    (Some(matcher), _, Some(error)) => mismatches("rpcError", matcher, Some(error), &mut found),
                    (None, Some(matcher), _) => {
                        mismatches("failure", matcher, Some(&kind.as_str().into()), &mut found);
                    }
                    (_, _, Some(_)) => found.push(message.clone()),
                    (_, _, None) => found.push(format!("{kind}: {message}")),
                }
            }
        }
        let errors = &observation.schema_errors;
        match expect.and_then(|expect| expect.schema_errors.as_ref()) {
            None => found.extend(errors.iter().map(|it| format!("the output schema of the tool does not allow {it}"))),
            Some(TextsExpectation::Any) if errors.is_empty() => {
                found
                    .push("schemaErrors: expected structured content that breaks the output schema, found none".into());
            }
            Some(TextsExpectation::Any) => {}
            Some(TextsExpectation::Matches(matcher)) => {
                mismatches("schemaErrors", matcher, Some(&errors.clone().into()), &mut found);
            }
        }
        let lists = expect.map(|expect| {
            [
                ("notifications", &expect.notifications, &observation.notifications),
                ("asked", &expect.asked, &observation.client_requests),
                ("statuses", &expect.statuses, &observation.statuses),
            ]
        });
        for (name, matcher, list) in lists.into_iter().flatten() {
            if let Some(matcher) = matcher {
                mismatches(name, matcher, Some(&list.clone().into()), &mut found);
            }
        }
        if let (Some(agent), Some(log)) = (expect.and_then(|it| it.agent.as_ref()), &observation.agent) {
            agent.check(log, &mut found);
        }
        if let (Some(matcher), Some(status)) = (expect.and_then(|it| it.status.as_ref()), observation.status) {
            mismatches("status", matcher, Some(&status.into()), &mut found);
        }
        if let (Some(every), Some(pause)) = (expect.and_then(|it| it.progress), observation.longest_pause)
            && pause > every
        {
            found.push(format!("progress: expected a report at least every {every:?}, found {pause:?} without one"));
        }
        found
    }

    /// Whether anything but a result is expected.
    fn expects_failure(&self) -> bool {
        self.rpc_error.is_some() || self.failure.is_some() || self.none
    }

    fn check_result(&self, result: &Json, found: &mut Vec<String>) {
        let came = match result.get("isError") {
            Some(Json::Bool(true)) => format!("the tool reports an error: {}", texts(result)),
            _ => format!("the result is {}", excerpt(result)),
        };
        for (name, matcher) in [("rpcError", &self.rpc_error), ("failure", &self.failure)] {
            if matcher.is_some() {
                found.push(format!("expected {name}, but {came}"));
            }
        }
        if self.none {
            found.push(format!("expected no response, but {came}"));
        }
        let text = Json::from(texts(result));
        let members = [
            ("text", &self.text, Some(&text)),
            ("structured", &self.structured, result.get("structuredContent")),
            ("content", &self.content, result.get("content")),
            ("result", &self.result, Some(result)),
            ("tools", &self.tools, result.get("tools")),
        ];
        for (name, matcher, value) in members {
            if let Some(matcher) = matcher {
                mismatches(name, matcher, value, found);
            }
        }
        for (pointer, matcher) in &self.at {
            mismatches(pointer, matcher, result.pointer(pointer), found);
        }
        found.extend(self.limits.iter().filter_map(|limit| limit.mismatch(result)));
    }
}

/// Whether an error says that the server does not do what is asked for: not that it is broken, or that the message is none.
fn is_refusal(error: &Json) -> bool {
    let broken = [PARSE_ERROR, METHOD_NOT_FOUND, INTERNAL_ERROR];
    error["code"].as_i64().is_some_and(|code| !broken.contains(&code))
}

/// A matcher for the kind of a failure.
fn read_failure(node: &Node) -> Result<Matcher, Problems> {
    let kinds = [&Failure::KINDS[..], &["connect", "rejected", "overflow"]].concat();
    match &node.value {
        Value::String(kind) if !kinds.contains(&kind.as_str()) => {
            let problem = node.problem(format!("unknown failure `{kind}`"));
            let near = nearest(kind, &kinds).map(|near| format!("did you mean `{near}`?"));
            Err(problem.hint(near.unwrap_or_else(|| format!("use one of {}", kinds.join(", ")))).into())
        }
        Value::String(_) | Value::Mapping(_) => Matcher::read(node),
        _ => {
            let problem = node.problem("`failure` must be a string");
            Err(problem.hint(format!("use one of {}", kinds.join(", "))).into())
        }
    }
}

fn mismatches(name: &str, matcher: &Matcher, value: Option<&Json>, found: &mut Vec<String>) {
    let mismatches = matcher.mismatches(value);
    found.extend(mismatches.iter().map(|mismatch| format!("{name}{}: {}", mismatch.pointer, mismatch.message)));
}

/// The start of a result as JSON.
fn excerpt(result: &Json) -> String {
    shortened(&result.to_string(), EXCERPT)
}

/// The text of all content blocks of a result, joined by newlines.
fn texts(result: &Json) -> String {
    let blocks = result.get("content").and_then(Json::as_array).into_iter().flatten();
    let texts = blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use rehearse_document::{Source, parse_yaml};
    use rehearse_protocol::RpcError;

    fn check(expect: &str, observation: &Observation) -> Vec<String> {
        let node = parse_yaml(&Source::new("e", expect)).expect(expect);
        let expect = (!expect.is_empty()).then(|| {
            Expectations::read(
                &node,
                ObservableFields { status: true, task: true, progress: true, refusal: true, agent: true, host: true },
            )
            .expect(expect)
        });
        Expectations::check(expect.as_ref(), observation)
    }

    #[test]
    fn a_result_is_compared_member_by_member() {
        let observation = Observation::result(
            json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }], "structuredContent": { "n": 1 } }),
        );
        assert_eq!(check("", &observation), [""; 0]);
        assert_eq!(
            check(
                "{ text: \"a\\nb\", structured: { n: 1 }, content: { length: 2 }, at: { /content/1/text: b } }",
                &observation
            ),
            [""; 0]
        );
        assert_eq!(
            check("{ text: x, at: { /nope: 1 } }", &observation),
            [r#"text: expected "x", found "a\nb""#, "/nope: expected 1, found nothing"]
        );
        let short = Observation::result(json!({ "n": 1 }));
        assert_eq!(check("{ failure: timeout }", &short), [r#"expected failure, but the result is {"n":1}"#]);
        assert_eq!(check("{ none: true }", &short), [r#"expected no response, but the result is {"n":1}"#]);
        assert_eq!(
            check("{ isError: true }", &short),
            [r#"isError: expected true, found false; the result is {"n":1}"#]
        );
        assert_eq!(
            check("{ notifications: { length: 1 } }", &observation),
            ["notifications: expected length 1, found length 0"]
        );
    }

    #[test]
    fn a_list_or_result_that_is_too_large_is_named_with_its_largest_items() {
        let tool = |name: &str, length| json!({ "name": name, "description": "a ".repeat(length) });
        let tools = [tool("a", 10), tool("b", 40), tool("c", 20), tool("d", 30)];
        let list = Observation::result(json!({ "tools": tools, "pages": 1 }));
        // The list without `pages`.
        let bytes = Json::from(tools.to_vec()).to_string().len();
        assert_eq!(check(&format!("{{ size: {{ max: {bytes} }}, tokens: {{ max: 1000 }} }}"), &list), [""; 0]);
        let found = check(&format!("{{ size: {{ max: {} }} }}", bytes - 1), &list);
        let expected = format!(
            "size: expected at most {} bytes, found {bytes} bytes; the largest: `b` 109, `d` 89, `c` 69",
            bytes - 1
        );
        assert_eq!(found, [expected]);
        let found = check("{ tokens: { max: 10 } }", &list);
        assert_eq!(found, ["tokens: expected at most 10 of o200k, found 134; the largest: `b` 48, `d` 38, `c` 28"]);
        let result = Observation::result(json!({ "content": [{ "type": "text", "text": "hello hello" }] }));
        let found = check("{ size: { max: 1KiB }, tokens: { max: 5, encoding: cl100k } }", &result);
        assert_eq!(found, ["tokens: expected at most 5 of cl100k, found 13"]);
    }

    #[test]
    fn a_pause_without_progress_is_a_difference() {
        let mut call = Observation::result(json!({}));
        call.longest_pause = Some(Duration::from_millis(20_500));
        assert_eq!(check("{ progress: { every: 21s } }", &call), [""; 0]);
        let found = check("{ progress: { every: 20s } }", &call);
        assert_eq!(found, ["progress: expected a report at least every 20s, found 20.5s without one"]);
    }

    #[test]
    fn every_error_must_be_expected() {
        let tool_error =
            Observation::result(json!({ "content": [{ "type": "text", "text": "broken" }], "isError": true }));
        assert_eq!(check("", &tool_error), ["the tool reports an error: broken"]);
        let found = check("{ rpcError: { code: 1 } }", &tool_error);
        assert_eq!(found, ["expected rpcError, but the tool reports an error: broken"]);
        assert_eq!(check("{ text: broken }", &tool_error), ["the tool reports an error: broken"]);
        assert_eq!(check("{ isError: true, text: broken }", &tool_error), [""; 0]);
        let timeout = Observation::from_failure(&Failure::Timeout(std::time::Duration::from_secs(1).into()));
        assert_eq!(check("", &timeout), ["timeout: no answer within 1s"]);
        assert_eq!(check("{ failure: timeout }", &timeout), [""; 0]);
        assert_eq!(check("{ failure: cancelled }", &timeout), [r#"failure: expected "cancelled", found "timeout""#]);
        assert_eq!(check("{ text: x }", &timeout), ["timeout: no answer within 1s"]);
        let rpc = Observation::from_failure(&Failure::Rpc(RpcError::new(-32602, "no such tool")));
        assert_eq!(check("", &rpc), ["error -32602: no such tool"]);
        assert_eq!(check("{ rpcError: { code: -32602 } }", &rpc), [""; 0]);
        assert_eq!(check("{ failure: rpc }", &rpc), [""; 0]);
        assert_eq!(check("{ rpcError: { code: 1 } }", &rpc), ["rpcError/code: expected 1, found -32602"]);
        assert_eq!(check("{ isError: any }", &rpc), [""; 0]);
        let broken = Observation::from_failure(&Failure::Rpc(RpcError::new(-32603, "broken")));
        assert_eq!(check("{ isError: any }", &broken), ["error -32603: broken"]);
        let silence = Observation::new(StepOutcome::Silence);
        assert_eq!(check("", &silence), ["no response arrived"]);
        assert_eq!(check("{ none: true }", &silence), [""; 0]);
    }
}
