//! What is expected of the run of an agent or a host, besides its answer.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::model_list::number;
use crate::{keys::KEYS, snapshot::observation::AgentLog};
use rehearse_document::{Node, Problem, Problems, Span, Value, matcher::Matcher};

/// The expectations about the run of an agent.
#[derive(Debug, Default)]
pub(crate) struct AgentExpectations {
    calls: Option<CallsExpectation>,
    not_called: Vec<String>,
    turns: Option<Range>,
    used_tokens: Option<Range>,
    failed_calls: Option<Range>,
    pub(crate) judge: Option<Judge>,
}

/// The calls that a run must have.
#[derive(Debug)]
struct CallsExpectation {
    order: CallOrder,
    calls: Vec<ExpectedCall>,
}

/// How the expected calls are among those of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallOrder {
    /// In this order; others may be between them.
    InOrder,
    /// All of them; others may be between them.
    AnyOrder,
    /// These, and no others.
    Exactly,
}

#[derive(Debug)]
struct ExpectedCall {
    tool: String,
    args: Option<Matcher>,
}

/// A number with limits.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: u64,
    max: u64,
}

/// A model that grades the answer.
#[derive(Debug)]
pub(crate) struct Judge {
    /// Its name in `models`, and where that is written.
    pub(crate) model: (String, Span),
    /// What a good answer is.
    pub(crate) prompt: String,
    /// The least grade that passes, from 0 to 1.
    pub(crate) threshold: f64,
}

impl AgentExpectations {
    /// Reads these keys of `expect`; `None` if there is none of them.
    pub(crate) fn read(node: &Node) -> Result<Option<AgentExpectations>, Problems> {
        let get = |key: &str| node.get(key);
        if KEYS.keys("ofAgent").iter().all(|key| get(key).is_none()) {
            return Ok(None);
        }
        let range = |key: &str| get(key).map(|node| Range::read(node, key)).transpose();
        Ok(Some(AgentExpectations {
            calls: get("calls").map(CallsExpectation::read).transpose()?,
            not_called: match get("notCalled") {
                Some(node) => node.one_or_more(|node| Ok(node.str()?.to_owned()))?,
                None => Vec::new(),
            },
            turns: range("turns")?,
            used_tokens: range("usedTokens")?,
            failed_calls: range("failedCalls")?,
            judge: get("judge").map(Judge::read).transpose()?,
        }))
    }

    /// The tools that must be called, each once.
    pub(crate) fn expected_tools(&self) -> BTreeSet<&str> {
        self.calls.iter().flat_map(|expected| &expected.calls).map(|call| call.tool.as_str()).collect()
    }

    /// The tools that are named.
    pub(crate) fn named_tools(&self) -> BTreeSet<&str> {
        self.expected_tools().into_iter().chain(self.not_called.iter().map(String::as_str)).collect()
    }

    /// Everything in which a run differs.
    pub(crate) fn check(&self, log: &AgentLog, found: &mut Vec<String>) {
        let AgentLog { calls, turns, usage, .. } = log;
        if let Some(expected) = &self.calls {
            expected.check(calls, found);
        }
        for tool in self.not_called.iter().filter(|tool| calls.iter().any(|call| call["tool"] == **tool)) {
            found.push(format!("notCalled: `{tool}` was called"));
        }
        for (key, range, value) in [
            ("turns", self.turns, *turns),
            ("usedTokens", self.used_tokens, usage.total()),
            ("failedCalls", self.failed_calls, log.failed_calls()),
        ] {
            if let Some(range) = range.filter(|range| !(range.min..=range.max).contains(&value)) {
                found.push(format!("{key}: expected {}, found {value}", range.describe()));
            }
        }
    }
}

impl CallsExpectation {
    fn read(node: &Node) -> Result<CallsExpectation, Problems> {
        let (order, list) = match &node.value {
            // No call is expected exactly.
            Value::Sequence(items) if items.is_empty() => (CallOrder::Exactly, node),
            Value::Mapping(_) => {
                let entry = KEYS.choice(node, "calls")?;
                let order = match &*entry.key {
                    "inOrder" => CallOrder::InOrder,
                    "anyOrder" => CallOrder::AnyOrder,
                    _ => CallOrder::Exactly,
                };
                (order, &entry.node)
            }
            _ => (CallOrder::InOrder, node),
        };
        let calls = match &list.value {
            Value::Sequence(_) => list.each(ExpectedCall::read)?,
            _ => vec![ExpectedCall::read(list)?],
        };
        Ok(CallsExpectation { order, calls })
    }

    fn check(&self, calls: &[Json], found: &mut Vec<String>) {
        if self.order == CallOrder::AnyOrder {
            return self.check_any_order(calls, found);
        }
        let mut position = 0;
        for (at, expected) in self.calls.iter().enumerate() {
            let last = if self.order == CallOrder::Exactly { calls.len().min(position + 1) } else { calls.len() };
            let left = &calls[position..last];
            match left.iter().position(|call| expected.mismatches(call).is_empty()) {
                Some(offset) => position += offset + 1,
                None => {
                    let after = at.checked_sub(1).and_then(|at| self.calls.get(at));
                    return found.push(expected.missing(left, calls, after));
                }
            }
        }
        if self.order == CallOrder::Exactly && position < calls.len() {
            let expected = if self.calls.is_empty() { "none" } else { "no other one" };
            found.push(format!("calls: expected {expected}, {}", names(calls)));
        }
    }

    /// Gives each expected call one of the run that no other one needs.
    fn check_any_order(&self, calls: &[Json], found: &mut Vec<String>) {
        // The expected call that each call of the run is given to.
        let mut owners: Vec<Option<usize>> = vec![None; calls.len()];
        for (at, expected) in self.calls.iter().enumerate() {
            if !self.give(at, calls, &mut owners, &mut vec![false; calls.len()]) {
                let left: Vec<_> = calls.iter().zip(&owners).filter(|(_, owner)| owner.is_none()).collect();
                let left: Vec<_> = left.into_iter().map(|(call, _)| call.clone()).collect();
                return found.push(expected.missing(&left, calls, None));
            }
        }
    }

    /// Finds a call for the expected one, also by giving others another one (an augmenting path of a matching).
    fn give(&self, at: usize, calls: &[Json], owners: &mut [Option<usize>], tried: &mut [bool]) -> bool {
        for (call, value) in calls.iter().enumerate() {
            if tried[call] || !self.calls[at].mismatches(value).is_empty() {
                continue;
            }
            tried[call] = true;
            if owners[call].is_none_or(|owner| self.give(owner, calls, owners, tried)) {
                owners[call] = Some(at);
                return true;
            }
        }
        false
    }
}

/// What was called.
fn names(calls: &[Json]) -> String {
    let names: Vec<_> = calls.iter().map(|call| format!("`{}`", call["tool"].as_str().unwrap_or_default())).collect();
    if names.is_empty() { "no tool was called".to_owned() } else { format!("found {}", names.join(", ")) }
}

impl ExpectedCall {
    fn read(node: &Node) -> Result<ExpectedCall, Problems> {
        if let Value::String(tool) = &node.value {
            return Ok(ExpectedCall { tool: tool.clone(), args: None });
        }
        let fields = KEYS.fields(node, "toolCall")?;
        let tool = fields.required("tool")?.str()?.to_owned();
        Ok(ExpectedCall { tool, args: fields.read("args", Matcher::read)? })
    }

    /// Why none of the calls that are left is the expected one.
    fn missing(&self, left: &[Json], calls: &[Json], after: Option<&ExpectedCall>) -> String {
        if let Some(call) = left.iter().find(|call| call["tool"] == *self.tool) {
            return format!("calls: {}", self.mismatches(call).join("; "));
        }
        let after = after.map(|call| format!(" after `{}`", call.tool)).unwrap_or_default();
        format!("calls: expected `{}`{after}, {}", self.tool, names(calls))
    }

    fn mismatches(&self, call: &Json) -> Vec<String> {
        if call["tool"] != *self.tool {
            return vec![format!("expected `{}`, found `{}`", self.tool, call["tool"].as_str().unwrap_or_default())];
        }
        let mismatches = self.args.iter().flat_map(|matcher| matcher.mismatches(call.get("arguments")));
        mismatches.map(|it| format!("{}{}: {}", self.tool, it.pointer, it.message)).collect()
    }
}

impl Range {
    /// A number, or an object with `min` and `max`.
    fn read(node: &Node, key: &str) -> Result<Range, Problems> {
        if let Value::Mapping(_) = node.value {
            let fields = KEYS.fields_as(node, "leastAndMost", &format!("`{key}`"))?;
            if fields.is_empty() {
                return Err(node.problem(format!("`{key}` needs `min` or `max`")).into());
            }
            let (min, max) = (fields.read("min", Node::integer)?, fields.read("max", Node::integer)?);
            let range = Range { min: min.unwrap_or(0), max: max.unwrap_or(u64::MAX) };
            if range.min > range.max {
                return Err(node.problem("`min` is greater than `max`").into());
            }
            return Ok(range);
        }
        let exactly = node.integer()?;
        Ok(Range { min: exactly, max: exactly })
    }

    fn describe(self) -> String {
        match self {
            Range { min, max } if min == max => min.to_string(),
            Range { min: 0, max } => format!("at most {max}"),
            Range { min, max: u64::MAX } => format!("at least {min}"),
            Range { min, max } => format!("{min} to {max}"),
        }
    }
}

impl Judge {
    fn read(node: &Node) -> Result<Judge, Problems> {
        let fields = KEYS.fields(node, "judge")?;
        let model = fields.required("model")?;
        let threshold =
            fields.get("threshold").map(|node| Ok::<_, Problems>((number(node)?, node.span))).transpose()?;
        if let Some((_, span)) = threshold.filter(|(threshold, _)| *threshold > 1.0) {
            return Err(Problem::new(span, "`threshold` must be a number from 0 to 1").into());
        }
        Ok(Judge {
            model: (model.str()?.to_owned(), model.span),
            prompt: fields.required("prompt")?.str()?.to_owned(),
            threshold: threshold.map_or(0.5, |(threshold, _)| threshold),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_document::{Source, parse_yaml};
    use rehearse_llm::model::Usage;
    use serde_json::json;

    fn check(expect: &str, log: &AgentLog) -> Vec<String> {
        let source = Source::new("s.yaml", expect);
        let read = parse_yaml(&source).and_then(|node| AgentExpectations::read(&node));
        let mut found = Vec::new();
        read.expect("valid").expect("expectations").check(log, &mut found);
        found
    }

    #[test]
    fn calls_are_expected_in_order_in_any_order_or_exactly() {
        let call = |tool: &str, args: Json| json!({ "tool": tool, "arguments": args });
        let calls = [call("find", json!({})), call("get", json!({ "id": 7 })), call("say", json!({ "text": "hi" }))];
        let log = AgentLog { calls: calls.to_vec(), ..AgentLog::default() };
        let of = |expect: &str| check(expect, &log);
        for expect in [
            "calls: [find, say]",
            "calls: get",
            "calls: [{ tool: get, args: { id: 7 } }]",
            "calls: { anyOrder: [say, find] }",
            "calls: { exactly: [find, get, say] }",
            "notCalled: delete",
        ] {
            assert_eq!(of(expect), [""; 0], "{expect}");
        }
        for (expect, problem) in [
            ("calls: [say, find]", "calls: expected `find` after `say`, found `find`, `get`, `say`"),
            ("calls: [{ tool: get, args: { id: 8 } }]", "calls: get/id: expected 8, found 7"),
            ("calls: { anyOrder: [find, find] }", "calls: expected `find`, found `find`, `get`, `say`"),
            ("calls: { exactly: [find, get] }", "calls: expected no other one, found `find`, `get`, `say`"),
            ("calls: { exactly: [get, say] }", "calls: expected `get`, found `find`, `get`, `say`"),
            ("calls: []", "calls: expected none, found `find`, `get`, `say`"),
            ("notCalled: [x, say]", "notCalled: `say` was called"),
        ] {
            assert_eq!(of(expect), [problem], "{expect}");
        }
        let nothing = AgentLog::default();
        assert_eq!(check("calls: []", &nothing), [""; 0]);
        assert_eq!(check("calls: get", &nothing), ["calls: expected `get`, no tool was called"]);
        // The first one must not take what the second one needs.
        let twice = vec![call("get", json!({ "id": 1 })), call("get", json!({ "id": 2 }))];
        let twice = AgentLog { calls: twice, ..AgentLog::default() };
        assert_eq!(check("calls: { anyOrder: [get, { tool: get, args: { id: 1 } }] }", &twice), [""; 0]);
    }

    #[test]
    fn what_a_run_took_has_limits() {
        let usage = Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() };
        let log = AgentLog { calls: vec![json!({ "isError": true })], turns: 3, usage, ..AgentLog::default() };
        let of = |expect: &str| check(expect, &log);
        assert_eq!(of("{ turns: 3, usedTokens: { max: 1000 }, failedCalls: { min: 1 } }"), [""; 0]);
        assert_eq!(
            of("{ turns: { max: 2 }, usedTokens: { min: 1001, max: 2000 }, failedCalls: 0 }"),
            [
                "turns: expected at most 2, found 3",
                "usedTokens: expected 1001 to 2000, found 1000",
                "failedCalls: expected 0, found 1"
            ]
        );
    }
}
