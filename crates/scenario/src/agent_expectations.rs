//! What is expected of the run of an agent, besides its answer.

use serde_json::Value as Json;

use super::model_list::number;
use rehearse_document::{Node, Problem, Problems, Span, Value, matcher::Matcher};
use rehearse_llm::model::Usage;

/// The keys of `expect` that only `agent` has.
pub(super) const KEYS: [&str; 6] = ["calls", "notCalled", "turns", "usedTokens", "failedCalls", "judge"];
const ORDERS: [&str; 3] = ["inOrder", "anyOrder", "exactly"];

/// The expectations about the run of an agent.
#[derive(Debug, Default)]
pub(super) struct AgentExpectations {
    calls: Option<CallsExpectation>,
    not_called: Vec<String>,
    turns: Option<Range>,
    used_tokens: Option<Range>,
    failed_calls: Option<Range>,
    pub(super) judge: Option<Judge>,
}

/// What a run took, as far as something can be expected of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentStatistics {
    /// How often the model answered.
    pub turns: u64,
    /// The tokens that it read and wrote.
    pub usage: Usage,
    /// The calls with an error.
    pub failed_calls: u64,
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
pub(super) struct Judge {
    /// Its name in `models`, and where that is written.
    pub(super) model: (String, Span),
    /// What a good answer is.
    pub(super) prompt: String,
    /// The least grade that passes, from 0 to 1.
    pub(super) threshold: f64,
}

impl AgentExpectations {
    /// Reads these keys of `expect`; `None` if there is none of them.
    pub(super) fn read(node: &Node) -> Result<Option<AgentExpectations>, Problems> {
        let get = |key: &str| node.get(key);
        if KEYS.iter().all(|key| get(key).is_none()) {
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

    /// The tools that must be called.
    pub(super) fn expected_tools(&self) -> Vec<&str> {
        let mut tools: Vec<_> =
            self.calls.iter().flat_map(|expected| &expected.calls).map(|call| call.tool.as_str()).collect();
        tools.dedup();
        tools
    }

    /// Everything in which a run differs; `calls` are those of its result.
    pub(super) fn check(&self, calls: &[Json], statistics: &AgentStatistics, found: &mut Vec<String>) {
        if let Some(expected) = &self.calls {
            expected.check(calls, found);
        }
        for tool in self.not_called.iter().filter(|tool| calls.iter().any(|call| call["tool"] == **tool)) {
            found.push(format!("notCalled: `{tool}` was called"));
        }
        let AgentStatistics { turns, usage, failed_calls } = *statistics;
        for (key, range, value) in [
            ("turns", self.turns, turns),
            ("usedTokens", self.used_tokens, usage.total()),
            ("failedCalls", self.failed_calls, failed_calls),
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
                let fields = node.fields("`calls`", &ORDERS)?;
                let entry = fields.exactly_one(&ORDERS)?;
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
        let mut position = 0;
        let mut used = vec![false; calls.len()];
        for expected in &self.calls {
            let candidates = match self.order {
                CallOrder::AnyOrder => 0..calls.len(),
                CallOrder::InOrder => position..calls.len(),
                CallOrder::Exactly => position..calls.len().min(position + 1),
            };
            let matching = candidates.clone().find(|at| !used[*at] && expected.mismatches(&calls[*at]).is_empty());
            match matching {
                Some(at) => (position, used[at]) = (at + 1, true),
                None => {
                    let mut left = candidates.filter(|at| !used[*at]).map(|at| &calls[at]);
                    let same_tool = left.find(|call| call["tool"] == *expected.tool);
                    found.push(match same_tool {
                        Some(call) => format!("calls: {}", expected.mismatches(call).join("; ")),
                        None => format!("calls: expected `{}`, {}", expected.tool, names(calls)),
                    });
                    return;
                }
            }
        }
        if self.order == CallOrder::Exactly && position < calls.len() {
            let expected = if self.calls.is_empty() { "none" } else { "no other one" };
            found.push(format!("calls: expected {expected}, {}", names(calls)));
        }
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
        let fields = node.fields("a call", &["tool", "args"])?;
        let tool = fields.required("tool")?.str()?.to_owned();
        Ok(ExpectedCall { tool, args: fields.read("args", Matcher::read)? })
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
            let fields = node.fields(&format!("`{key}`"), &["min", "max"])?;
            if fields.is_empty() {
                return Err(node.problem(format!("`{key}` needs `min` or `max`")).into());
            }
            let (min, max) = (fields.read("min", Node::integer)?, fields.read("max", Node::integer)?);
            return Ok(Range { min: min.unwrap_or(0), max: max.unwrap_or(u64::MAX) });
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
        let fields = node.fields("`judge`", &["model", "prompt", "threshold"])?;
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
    use serde_json::json;

    fn check(expect: &str, calls: &[Json], statistics: AgentStatistics) -> Vec<String> {
        let source = Source::new("s.yaml", expect);
        let read = parse_yaml(&source).and_then(|node| AgentExpectations::read(&node));
        let mut found = Vec::new();
        read.expect("valid").expect("expectations").check(calls, &statistics, &mut found);
        found
    }

    #[test]
    fn calls_are_expected_in_order_in_any_order_or_exactly() {
        let call = |tool: &str, args: Json| json!({ "tool": tool, "arguments": args });
        let calls = [call("find", json!({})), call("get", json!({ "id": 7 })), call("say", json!({ "text": "hi" }))];
        let of = |expect: &str| check(expect, &calls, AgentStatistics::default());
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
            ("calls: [say, find]", "calls: expected `find`, found `find`, `get`, `say`"),
            ("calls: [{ tool: get, args: { id: 8 } }]", "calls: get/id: expected 8, found 7"),
            ("calls: { anyOrder: [find, find] }", "calls: expected `find`, found `find`, `get`, `say`"),
            ("calls: { exactly: [find, get] }", "calls: expected no other one, found `find`, `get`, `say`"),
            ("calls: { exactly: [get, say] }", "calls: expected `get`, found `find`, `get`, `say`"),
            ("calls: []", "calls: expected none, found `find`, `get`, `say`"),
            ("notCalled: [x, say]", "notCalled: `say` was called"),
        ] {
            assert_eq!(of(expect), [problem], "{expect}");
        }
        assert_eq!(check("calls: []", &[], AgentStatistics::default()), [""; 0]);
        assert_eq!(check("calls: get", &[], AgentStatistics::default()), ["calls: expected `get`, no tool was called"]);
    }

    #[test]
    fn what_a_run_took_has_limits() {
        let usage = Usage { input_tokens: 900, output_tokens: 100, ..Usage::default() };
        let statistics = AgentStatistics { turns: 3, usage, failed_calls: 1 };
        let of = |expect: &str| check(expect, &[], statistics);
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

    #[test]
    fn mistakes_have_a_position() {
        let error = |text: &str| {
            let source = Source::new("s.yaml", text);
            let read = parse_yaml(&source).and_then(|node| AgentExpectations::read(&node));
            read.map_err(|problems| problems.in_source(&source).to_string()).expect_err(text)
        };
        for (text, message) in [
            ("calls: { inorder: [a] }", "s.yaml:1:10: "),
            ("turns: { }", "s.yaml:1:8: `turns` needs `min` or `max`"),
            ("judge: { prompt: x }", "s.yaml:1:8: `judge` needs a `model`"),
            ("judge: { model: m, prompt: x, threshold: 2 }", "s.yaml:1:42: `threshold` must be a number from 0 to 1"),
        ] {
            assert!(error(text).starts_with(message), "{}", error(text));
        }
    }
}
