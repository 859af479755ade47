//! The scripted answers of a client to server requests.

use std::sync::Arc;

use serde_json::json;

use crate::keys::KEYS;
use rehearse_client::{Answer, AnswerScript};
use rehearse_document::{Diagnostics, Fields, Node, Problem, Problems, Source, Value, nearest, parse_yaml};
use rehearse_protocol::RpcError;

const ACTIONS: &[&str] = &["accept", "decline", "cancel"];
/// The `model` of a sampling answer that is written as a string.
const MODEL: &str = "scripted";

/// Reads a file of answers: the value of `answers` in a scenario, with or without that key.
///
/// # Errors
/// Every mistake in it.
pub fn parse_answers(source: &Arc<Source>) -> Result<AnswerScript, Diagnostics> {
    let answers = |root: Node| match root.get("answers") {
        None => read(&root),
        Some(answers) => {
            root.fields("a file of answers", &["answers"])?;
            read(answers)
        }
    };
    parse_yaml(source).and_then(answers).map_err(|problems| problems.in_source(source))
}

/// Reads `answers`.
///
/// # Errors
/// Every mistake in it.
pub(crate) fn read(node: &Node) -> Result<AnswerScript, Problems> {
    let fields = KEYS.fields(node, "answers")?;
    if fields.is_empty() {
        return Err(node.problem("`answers` must not be empty").hint("remove it").into());
    }
    Ok(AnswerScript {
        elicitation: fields.read("elicitation", |node| node.one_or_more(elicitation))?.unwrap_or_default(),
        sampling: fields.read("sampling", |node| node.one_or_more(sampling))?.unwrap_or_default(),
        roots: fields.read("roots", |node| Ok(vec![roots(node)?]))?.unwrap_or_default(),
    })
}

/// `{ content }`, `{ action }` or `{ error }`.
fn elicitation(node: &Node) -> Result<Answer, Problems> {
    let fields = KEYS.fields(node, "elicitation")?;
    if let Some(answer) = error(&fields)? {
        return Ok(answer);
    }
    let action = fields.read("action", |node| {
        let action = node.str()?;
        if ACTIONS.contains(&action) {
            return Ok(action);
        }
        let problem = node.problem(format!("unknown action `{action}`"));
        let near = nearest(action, ACTIONS).map(|near| format!("did you mean `{near}`?"));
        Err(problem.hint(near.unwrap_or_else(|| format!("use one of {}", ACTIONS.join(", ")))).into())
    })?;
    match (action, fields.entry("content")) {
        (None, None) => return Err(node.problem("an answer needs `content`, `action` or `error`").into()),
        (Some("decline" | "cancel"), Some(content)) => {
            return Err(Problem::new(content.key_span, "`content` requires the action `accept`").into());
        }
        (_, Some(content)) => drop(content.node.entries()?),
        (_, None) => {}
    }
    let mut answer = json!({ "action": action.unwrap_or("accept") });
    for key in ["content", "_meta"] {
        if let Some(value) = fields.get(key) {
            answer[key] = value.to_json();
        }
    }
    Ok(Answer::Result(answer))
}

/// A string, `{ text }`, `{ error }`, or a whole result.
fn sampling(node: &Node) -> Result<Answer, Problems> {
    let message = |text: &str| {
        let content = json!({ "type": "text", "text": text });
        Answer::Result(json!({ "role": "assistant", "content": content, "model": MODEL, "stopReason": "endTurn" }))
    };
    let short = |node: &Node| node.get("text").is_some() || node.get("error").is_some();
    match &node.value {
        Value::String(text) => Ok(message(text)),
        Value::Mapping(_) if short(node) => {
            let fields = KEYS.fields(node, "shortSampling")?;
            match error(&fields)? {
                Some(answer) => Ok(answer),
                None => Ok(message(fields.required("text")?.str()?)),
            }
        }
        Value::Mapping(_) => match ["role", "content", "model"].iter().find(|key| node.get(key).is_none()) {
            None => Ok(Answer::Result(node.to_json())),
            Some(missing) => {
                let problem = node.problem(format!("a sampling result needs `{missing}`"));
                Err(problem.hint("write `text: …` for a text answer").into())
            }
        },
        _ => Err(node.problem("an answer to a sampling request must be a string or an object").into()),
    }
}

/// The array of all roots, which may be empty.
fn roots(node: &Node) -> Result<Answer, Problems> {
    let roots = node.each(|node| {
        let fields = KEYS.fields(node, "root")?;
        fields.required("uri")?.str()?;
        fields.read("name", |node| node.str().map(drop))?;
        Ok(node.to_json())
    })?;
    Ok(Answer::Result(json!({ "roots": roots })))
}

fn error(fields: &Fields<'_>) -> Result<Option<Answer>, Problems> {
    let Some(entry) = fields.entry("error") else { return Ok(None) };
    if let Some(other) = ["action", "content", "text", "_meta"].iter().find_map(|key| fields.entry(key)) {
        return Err(Problem::new(other.key_span, format!("`{}` and `error` exclude each other", other.key)).into());
    }
    let error = KEYS.fields(&entry.node, "rpcError")?;
    let plain = RpcError::new(error.required("code")?.integer()?, error.required("message")?.str()?);
    Ok(Some(Answer::Error(match error.get("data").map(Node::to_json) {
        None => plain,
        Some(data) => plain.with_data(data),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AnswerScript, String> {
        parse_answers(&Source::new("a", text)).map_err(|diagnostics| diagnostics.to_string())
    }

    #[test]
    fn every_form_of_an_answer_becomes_a_result_or_an_error() {
        let script = parse(
            "
elicitation:
  - content: { name: Ada }
  - action: decline
  - error: { code: -32000, message: busy }
sampling:
  - text: Paris
  - { role: assistant, content: { type: image }, model: m, extra: 1.0 }
roots: [{ uri: 'file:///a', name: a }]
",
        )
        .expect("valid");
        let result = |json| Answer::Result(json);
        assert_eq!(
            script.elicitation,
            [
                result(json!({ "action": "accept", "content": { "name": "Ada" } })),
                result(json!({ "action": "decline" })),
                Answer::Error(RpcError::new(-32000, "busy")),
            ]
        );
        let text = json!({
            "role": "assistant", "content": { "type": "text", "text": "Paris" },
            "model": "scripted", "stopReason": "endTurn",
        });
        let whole = json!({ "role": "assistant", "content": { "type": "image" }, "model": "m", "extra": 1.0 });
        assert_eq!(script.sampling, [result(text.clone()), result(whole)]);
        assert_eq!(script.roots, [result(json!({ "roots": [{ "uri": "file:///a", "name": "a" }] }))]);
        let single = parse("{ sampling: Paris, elicitation: { action: accept }, roots: [] }").expect("valid");
        assert_eq!(single.sampling, [result(text)]);
        assert_eq!(single.elicitation, [result(json!({ "action": "accept" }))]);
        assert_eq!(single.roots, [result(json!({ "roots": [] }))]);
    }

    #[test]
    fn a_file_may_have_the_key_that_a_scenario_has() {
        assert_eq!(parse("answers: { sampling: Paris }"), parse("sampling: Paris"));
    }

    #[test]
    fn mistakes_have_a_position_and_a_hint() {
        for (text, message) in [
            ("{ answers: { sampling: a }, steps: [] }", "a:1:29: a file of answers has no key `steps`"),
            ("{}", "a:1:1: `answers` must not be empty (remove it)"),
            ("{ elicit: [] }", "a:1:3: `answers` has no key `elicit` (did you mean `elicitation`?)"),
            ("elicitation: []", "a:1:14: the array must not be empty"),
            ("elicitation: [{ action: declined }]", "a:1:25: unknown action `declined` (did you mean"),
            ("elicitation: [{ action: cancel, content: {} }]", "a:1:33: `content` requires the action `accept`"),
            ("elicitation: [{ content: Ada }]", "a:1:26: expected an object"),
            ("elicitation: [{ _meta: {} }]", "a:1:15: an answer needs `content`, `action` or `error`"),
            (
                "sampling: [{ text: a, error: { code: 1, message: m } }]",
                "a:1:14: `text` and `error` exclude each other",
            ),
            ("sampling: [{ role: assistant, content: {} }]", "a:1:12: a sampling result needs `model`"),
            ("roots: [{ name: a }]", "a:1:9: a root needs a `uri`"),
            ("roots: { uri: a }", "a:1:8: expected an array"),
        ] {
            let shown = parse(text).expect_err(text);
            assert!(shown.starts_with(message), "{shown}");
        }
    }
}
