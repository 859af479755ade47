//! What a step must bring.

use serde_json::Value as Json;

use super::{Observation, observe::Outcome};
use crate::{
    config::{Node, Problems},
    mock::matcher::Matcher,
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
    "status",
    "none",
];

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
    status: Option<Matcher>,
    /// No answer at all is expected.
    none: bool,
}

impl Expect {
    pub(super) fn read(node: &Node) -> Result<Expect, Problems> {
        let fields = node.fields("`expect`", KEYS)?;
        fields.at_most_one(&["rpcError", "failure", "none"])?;
        let matcher = |key: &str| fields.read(key, Matcher::read);
        let at = fields.get("at").map(Node::entries).transpose()?.unwrap_or_default();
        let at = at.iter().map(|entry| Ok((entry.key.clone(), Matcher::read(&entry.node)?)));
        Ok(Expect {
            text: matcher("text")?,
            is_error: fields.read("isError", Node::bool)?,
            structured: matcher("structured")?,
            content: matcher("content")?,
            result: matcher("result")?,
            at: Problems::collect(at)?,
            rpc_error: matcher("rpcError")?,
            failure: matcher("failure")?,
            notifications: matcher("notifications")?,
            status: matcher("status")?,
            none: fields.read("none", Node::bool)?.unwrap_or(false),
        })
    }

    /// Everything in which an observation differs. A snapshot of the step takes the place of expectations about how
    /// it ended, so that those need not be repeated.
    pub fn judge(expect: Option<&Expect>, observation: &Observation, has_snapshot: bool) -> Vec<String> {
        let mut found = Vec::new();
        let expects = |pick: fn(&Expect) -> bool| expect.is_some_and(pick);
        match &observation.outcome {
            Outcome::Result(result) => {
                let is_error = result.get("isError") == Some(&Json::Bool(true));
                let expected = expect.and_then(|expect| expect.is_error);
                if is_error != expected.unwrap_or(is_error && has_snapshot) {
                    let text = texts(result);
                    found.push(if is_error {
                        format!("the tool reports an error: {text}")
                    } else {
                        "isError: expected true, found false".into()
                    });
                }
                if let Some(expect) = expect {
                    expect.judge_result(result, &mut found);
                }
            }
            Outcome::Silence if expects(|expect| expect.none) || (has_snapshot && expect.is_none()) => {}
            Outcome::Silence => found.push("no answer came".into()),
            Outcome::Failed { kind, message, error } => {
                let matcher = expect.and_then(|expect| match error {
                    Some(_) => expect.rpc_error.as_ref().or(expect.failure.as_ref()),
                    None => expect.failure.as_ref(),
                });
                match (matcher, error) {
                    (Some(_), Some(error)) if expects(|expect| expect.rpc_error.is_some()) => {
                        mismatches("rpcError", matcher, Some(error), &mut found);
                    }
                    (Some(_), _) => mismatches("failure", matcher, Some(&kind.as_str().into()), &mut found),
                    (None, _) if has_snapshot && expect.is_none() => {}
                    (None, Some(_)) => found.push(message.clone()),
                    (None, None) => found.push(format!("{kind}: {message}")),
                }
            }
        }
        if let Some(expect) = expect {
            let notifications = Json::Array(observation.notifications.clone());
            mismatches("notifications", expect.notifications.as_ref(), Some(&notifications), &mut found);
            if let Some(status) = observation.status {
                mismatches("status", expect.status.as_ref(), Some(&status.into()), &mut found);
            }
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
        mismatches("text", self.text.as_ref(), Some(&texts(result).into()), found);
        mismatches("structured", self.structured.as_ref(), result.get("structuredContent"), found);
        mismatches("content", self.content.as_ref(), result.get("content"), found);
        mismatches("result", self.result.as_ref(), Some(result), found);
        for (pointer, matcher) in &self.at {
            mismatches(pointer, Some(matcher), result.pointer(pointer), found);
        }
    }
}

fn mismatches(name: &str, matcher: Option<&Matcher>, value: Option<&Json>, found: &mut Vec<String>) {
    let Some(matcher) = matcher else { return };
    found.extend(
        matcher
            .mismatches(value)
            .iter()
            .map(|mismatch| format!("{name}{}{}: {}", "", mismatch.pointer, mismatch.message)),
    );
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
        client::Failure,
        config::{Source, parse_yaml},
        wire::RpcError,
    };

    fn judge(expect: &str, observation: &Observation) -> Vec<String> {
        let node = parse_yaml(&Source::new("e", expect)).expect(expect);
        let expect = (!expect.is_empty()).then(|| Expect::read(&node).expect(expect));
        Expect::judge(expect.as_ref(), observation, false)
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
        let silence = Observation { outcome: Outcome::Silence, notifications: Vec::new(), status: None };
        assert_eq!(judge("", &silence), ["no answer came"]);
        assert_eq!(judge("{ none: true }", &silence), [""; 0]);
    }

    #[test]
    fn a_snapshot_alone_says_how_a_step_may_end() {
        let timeout = Observation::failure(&Failure::Timeout(std::time::Duration::from_secs(1)));
        assert!(Expect::judge(None, &timeout, true).is_empty());
    }
}
