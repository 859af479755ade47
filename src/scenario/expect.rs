//! What a step must bring.

use serde_json::Value as Json;

use super::{Observation, observe::Outcome};
use crate::{
    client::Failure,
    config::{Node, Problem, Problems, Value, nearest},
    mock::matcher::Matcher,
    transport::UnsolicitedFrame,
};

const KEYS: &[&str] = &[
    "text",
    "isError",
    "structured",
    "content",
    "result",
    "at",
    "rpcError",
    "failure",
    "notifications",
    "asked",
    "noise",
    "statuses",
    "status",
    "none",
];

/// Those that only a result can meet.
const RESULT_KEYS: &[&str] = &["text", "isError", "structured", "content", "result", "at"];

/// Expectations; all of them must hold. Whatever is not a result must be expected.
#[derive(Debug)]
pub struct Expect {
    /// The texts of all content, joined.
    text: Option<Matcher>,
    is_error: Option<bool>,
    structured: Option<Matcher>,
    content: Option<Matcher>,
    result: Option<Matcher>,
    /// Values at JSON pointers into the result.
    at: Vec<(String, Matcher)>,
    rpc_error: Option<Matcher>,
    failure: Option<Matcher>,
    notifications: Option<Matcher>,
    asked: Option<Matcher>,
    noise: Option<Noise>,
    /// Those of a task.
    statuses: Option<Matcher>,
    status: Option<Matcher>,
    /// No answer at all is expected.
    none: bool,
}

/// Frames that belong to nothing: log lines between the messages, answers that nobody asked for.
#[derive(Debug)]
enum Noise {
    /// At least one.
    Any,
    /// The list of their texts.
    Matches(Matcher),
}

impl Noise {
    /// `true`, a matcher, or `false`, which says what holds anyway.
    fn read(node: &Node) -> Result<Option<Noise>, Problems> {
        match node.value {
            Value::Bool(is_expected) => Ok(is_expected.then_some(Noise::Any)),
            Value::Sequence(_) | Value::Mapping(_) => Ok(Some(Noise::Matches(Matcher::read(node)?))),
            _ => {
                let problem = node.problem("`noise` is true, or a matcher for the list of all texts");
                Err(problem.hint("for example `noise: { contains: Listening }`").into())
            }
        }
    }
}

/// What only some steps bring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observable {
    /// The HTTP status of a raw frame.
    pub(super) status: bool,
    /// The statuses of a task.
    pub(super) task: bool,
}

impl Expect {
    /// # Errors
    /// Every mistake, and expectations that the step cannot meet.
    pub(super) fn read(node: &Node, observable: Observable) -> Result<Expect, Problems> {
        let fields = node.fields("`expect`", KEYS)?;
        if fields.is_empty() {
            return Err(node.problem("an `expect` without expectations").hint("leave it out").into());
        }
        let not_a_result = fields.at_most_one(&["rpcError", "failure", "none"])?;
        let of_result = RESULT_KEYS.iter().find_map(|key| fields.entry(key));
        if let (Some(other), Some(entry)) = (not_a_result, of_result) {
            let message = format!("`{}` beside `{}`: a step with the one has not the other", entry.key, other.key);
            return Err(Problem::new(entry.key_span, message).into());
        }
        let special = [
            ("status", observable.status, "only the answer to a raw frame has a `status`"),
            ("statuses", observable.task, "only a call with `task: true` has `statuses`"),
        ];
        for (key, exists, message) in special {
            if let Some(entry) = fields.entry(key).filter(|_| !exists) {
                return Err(Problem::new(entry.key_span, message).into());
            }
        }
        let matcher = |key: &str| fields.read(key, Matcher::read);
        let at = fields.get("at").map(Node::entries).transpose()?.unwrap_or_default();
        let at = at.iter().map(|entry| {
            if !entry.key.is_empty() && !entry.key.starts_with('/') {
                let problem = Problem::new(entry.key_span, "`at` has JSON pointers into the result");
                return Err(problem.hint("for example /content/0/text").into());
            }
            Ok((entry.key.clone(), Matcher::read(&entry.node)?))
        });
        Ok(Expect {
            text: matcher("text")?,
            is_error: fields.read("isError", Node::bool)?,
            structured: matcher("structured")?,
            content: matcher("content")?,
            result: matcher("result")?,
            at: Problems::collect(at)?,
            rpc_error: matcher("rpcError")?,
            failure: fields.read("failure", read_failure)?,
            notifications: matcher("notifications")?,
            asked: matcher("asked")?,
            noise: fields.read("noise", Noise::read)?.flatten(),
            statuses: matcher("statuses")?,
            status: matcher("status")?,
            none: fields.read("none", Node::bool)?.unwrap_or(false),
        })
    }

    /// The expectation, if there is one, of something that belongs to a session and not to one of several steps.
    pub(super) fn of_session(&self) -> Option<&'static str> {
        let of_session = [
            ("notifications", self.notifications.is_some()),
            ("asked", self.asked.is_some()),
            ("noise", self.noise.is_some()),
        ];
        of_session.into_iter().find(|(_, is_expected)| *is_expected).map(|(key, _)| key)
    }

    /// Whether what the server asks is judged.
    pub(super) fn has_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether frames that belong to nothing are expected.
    pub(super) fn has_noise(&self) -> bool {
        self.noise.is_some()
    }

    /// What is wrong with the frames that belonged to nothing. None may come unless they are expected.
    pub(super) fn judge_noise(expect: Option<&Expect>, strays: &[UnsolicitedFrame]) -> Vec<String> {
        let mut found = Vec::new();
        match expect.and_then(|expect| expect.noise.as_ref()) {
            None => found.extend(strays.iter().map(|stray| format!("noise: {stray}"))),
            Some(Noise::Any) if strays.is_empty() => found.push("noise: expected some, but none came".into()),
            Some(Noise::Any) => {}
            Some(Noise::Matches(matcher)) => {
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

    /// Everything in which an observation differs. Whatever is not a plain result must be expected.
    pub fn judge(expect: Option<&Expect>, observation: &Observation) -> Vec<String> {
        let mut found = Vec::new();
        match &observation.outcome {
            Outcome::Result(result) => {
                let is_error = result.get("isError") == Some(&Json::Bool(true));
                if is_error != expect.and_then(|expect| expect.is_error).unwrap_or(false) {
                    found.push(match is_error {
                        true => format!("the tool reports an error: {}", texts(result)),
                        false => "isError: expected true, found false".into(),
                    });
                }
                if let Some(expect) = expect {
                    expect.judge_result(result, &mut found);
                }
            }
            Outcome::Silence if expect.is_some_and(|expect| expect.none) => {}
            Outcome::Silence => found.push("no answer came".into()),
            Outcome::Failed { kind, message, error } => {
                let rpc_error = expect.and_then(|expect| expect.rpc_error.as_ref());
                let failure = expect.and_then(|expect| expect.failure.as_ref());
                match (rpc_error, failure, error) {
                    (Some(matcher), _, Some(error)) => mismatches("rpcError", matcher, Some(error), &mut found),
                    (None, Some(matcher), _) => {
                        mismatches("failure", matcher, Some(&kind.as_str().into()), &mut found);
                    }
                    (_, _, Some(_)) => found.push(message.clone()),
                    (_, _, None) => found.push(format!("{kind}: {message}")),
                }
            }
        }
        let lists = expect.map(|expect| {
            [
                ("notifications", &expect.notifications, &observation.notifications),
                ("asked", &expect.asked, &observation.asked),
                ("statuses", &expect.statuses, &observation.statuses),
            ]
        });
        for (name, matcher, list) in lists.into_iter().flatten() {
            if let Some(matcher) = matcher {
                mismatches(name, matcher, Some(&list.clone().into()), &mut found);
            }
        }
        if let (Some(matcher), Some(status)) = (expect.and_then(|it| it.status.as_ref()), observation.status) {
            mismatches("status", matcher, Some(&status.into()), &mut found);
        }
        found
    }

    fn judge_result(&self, result: &Json, found: &mut Vec<String>) {
        for (name, matcher) in [("rpcError", &self.rpc_error), ("failure", &self.failure)] {
            if matcher.is_some() {
                found.push(format!("expected the {name}, but the step succeeded"));
            }
        }
        if self.none {
            found.push("expected no answer, but one came".into());
        }
        let text = Json::from(texts(result));
        let members = [
            ("text", &self.text, Some(&text)),
            ("structured", &self.structured, result.get("structuredContent")),
            ("content", &self.content, result.get("content")),
            ("result", &self.result, Some(result)),
        ];
        for (name, matcher, value) in members {
            if let Some(matcher) = matcher {
                mismatches(name, matcher, value, found);
            }
        }
        for (pointer, matcher) in &self.at {
            mismatches(pointer, matcher, result.pointer(pointer), found);
        }
    }
}

/// A matcher for the kind of a failure, which is one of a few words.
fn read_failure(node: &Node) -> Result<Matcher, Problems> {
    let kinds = [&Failure::KINDS[..], &["connect"]].concat();
    match &node.value {
        Value::String(kind) if !kinds.contains(&kind.as_str()) => {
            let problem = node.problem(format!("there is no failure `{kind}`"));
            let near = nearest(kind, &kinds).map(|near| format!("did you mean `{near}`?"));
            Err(problem.hint(near.unwrap_or_else(|| format!("failures are {}", kinds.join(", ")))).into())
        }
        Value::String(_) | Value::Mapping(_) => Matcher::read(node),
        _ => {
            let problem = node.problem("a failure is one word");
            Err(problem.hint(format!("one of {}", kinds.join(", "))).into())
        }
    }
}

fn mismatches(name: &str, matcher: &Matcher, value: Option<&Json>, found: &mut Vec<String>) {
    let mismatches = matcher.mismatches(value);
    found.extend(mismatches.iter().map(|mismatch| format!("{name}{}: {}", mismatch.pointer, mismatch.message)));
}

/// The texts of all content blocks of a result, joined by newlines.
fn texts(result: &Json) -> String {
    let blocks = result.get("content").and_then(Json::as_array).into_iter().flatten();
    let texts = blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        config::{Source, parse_yaml},
        wire::RpcError,
    };

    fn judge(expect: &str, observation: &Observation) -> Vec<String> {
        let node = parse_yaml(&Source::new("e", expect)).expect(expect);
        let expect =
            (!expect.is_empty()).then(|| Expect::read(&node, Observable { status: true, task: true }).expect(expect));
        Expect::judge(expect.as_ref(), observation)
    }

    #[test]
    fn a_result_is_compared_member_by_member() {
        let observation = Observation::result(
            json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }], "structuredContent": { "n": 1 } }),
        );
        assert_eq!(judge("", &observation), [""; 0]);
        assert_eq!(
            judge(
                "{ text: \"a\\nb\", structured: { n: 1 }, content: { length: 2 }, at: { /content/1/text: b } }",
                &observation
            ),
            [""; 0]
        );
        assert_eq!(
            judge("{ text: x, at: { /nope: 1 } }", &observation),
            [r#"text: expected "x", found "a\nb""#, "/nope: expected 1, found nothing"]
        );
        assert_eq!(judge("{ failure: timeout }", &observation), ["expected the failure, but the step succeeded"]);
        assert_eq!(judge("{ none: true }", &observation), ["expected no answer, but one came"]);
        assert_eq!(judge("{ isError: true }", &observation), ["isError: expected true, found false"]);
        assert_eq!(
            judge("{ notifications: { length: 1 } }", &observation),
            ["notifications: expected length 1, found length 0"]
        );
    }

    #[test]
    fn whatever_is_not_a_plain_result_must_be_expected() {
        let tool_error =
            Observation::result(json!({ "content": [{ "type": "text", "text": "broken" }], "isError": true }));
        assert_eq!(judge("", &tool_error), ["the tool reports an error: broken"]);
        assert_eq!(judge("{ text: broken }", &tool_error), ["the tool reports an error: broken"]);
        assert_eq!(judge("{ isError: true, text: broken }", &tool_error), [""; 0]);
        let timeout = Observation::failure(&Failure::Timeout(std::time::Duration::from_secs(1)));
        assert_eq!(judge("", &timeout), ["timeout: no answer within 1s"]);
        assert_eq!(judge("{ failure: timeout }", &timeout), [""; 0]);
        assert_eq!(judge("{ failure: cancelled }", &timeout), [r#"failure: expected "cancelled", found "timeout""#]);
        assert_eq!(judge("{ text: x }", &timeout), ["timeout: no answer within 1s"]);
        let rpc = Observation::failure(&Failure::Rpc(RpcError::new(-32602, "no such tool")));
        assert_eq!(judge("", &rpc), ["error -32602: no such tool"]);
        assert_eq!(judge("{ rpcError: { code: -32602 } }", &rpc), [""; 0]);
        assert_eq!(judge("{ failure: rpc }", &rpc), [""; 0]);
        assert_eq!(judge("{ rpcError: { code: 1 } }", &rpc), ["rpcError/code: expected 1, found -32602"]);
        let silence = Observation::new(Outcome::Silence);
        assert_eq!(judge("", &silence), ["no answer came"]);
        assert_eq!(judge("{ none: true }", &silence), [""; 0]);
    }

    #[test]
    fn expectations_that_could_not_fail_are_refused_when_read() {
        for (text, message) in [
            ("{}", "an `expect` without expectations"),
            ("{ failure: timeout, text: x }", "`text` beside `failure`"),
            ("{ none: true, at: { /a: 1 } }", "`at` beside `none`"),
            ("{ failure: timout }", "e:1:12: there is no failure `timout` (did you mean `timeout`?)"),
            ("{ failure: explosion }", "(failures are timeout, cancelled, disconnected,"),
            ("{ failure: [timeout] }", "a failure is one word"),
            ("{ noise: 5 }", "`noise` is true, or a matcher for the list of all texts"),
            ("{ status: 200 }", "only the answer to a raw frame has a `status`"),
            ("{ statuses: [working] }", "only a call with `task: true` has `statuses`"),
            ("{ at: { content/0: 1 } }", "`at` has JSON pointers"),
        ] {
            let source = Source::new("e", text);
            let read = parse_yaml(&source).and_then(|node| Expect::read(&node, Observable::default()));
            let shown = read.expect_err(text).in_source(&source).to_string();
            assert!(shown.contains(message), "{shown}");
        }
    }
}
