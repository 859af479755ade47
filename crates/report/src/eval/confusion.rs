//! Which tool a model called instead of the one that was expected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentCall;

/// A tool that was called instead of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confusion {
    /// The tool that was expected.
    pub expected: ToolText,
    /// The tool that was called, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<ToolText>,
    /// In how many runs.
    pub runs: usize,
}

/// A tool as a model sees it, without its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolText {
    pub name: String,
    #[serde(default)]
    pub description: String,
}

/// Pairs each expected tool that a run did not call with the first call of another tool. `describe` gives the description
/// of a tool.
pub fn confusions<'a>(
    expected: &[&str],
    runs: impl Iterator<Item = &'a [AgentCall]>,
    describe: impl Fn(&str) -> String,
) -> Vec<Confusion> {
    let text = |name: &str| ToolText { name: name.to_owned(), description: describe(name) };
    let mut found: Vec<Confusion> = Vec::new();
    for calls in runs {
        let other = calls.iter().map(|call| call.tool.as_str()).find(|tool| !expected.contains(tool));
        for name in expected.iter().filter(|name| calls.iter().all(|call| call.tool != **name)) {
            let same = |it: &&mut Confusion| {
                it.expected.name == **name && it.called.as_ref().map(|tool| tool.name.as_str()) == other
            };
            match found.iter_mut().find(same) {
                Some(known) => known.runs += 1,
                None => found.push(Confusion { expected: text(name), called: other.map(text), runs: 1 }),
            }
        }
    }
    found.sort_by_key(|confusion| std::cmp::Reverse(confusion.runs));
    found
}

impl Confusion {
    /// What happened, of so many runs.
    pub(crate) fn sentence(&self, model: &str, all: usize) -> String {
        let Confusion { expected, called, runs } = self;
        match called {
            Some(called) => {
                format!("{model} called `{}` instead of `{}` {runs} of {all} times", called.name, expected.name)
            }
            None => format!("{model} did not call `{}` {runs} of {all} times, and called nothing else", expected.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::model_result;

    #[test]
    fn a_missing_call_is_paired_with_the_first_other_one() {
        let result = model_result(
            "m",
            &[
                (false, &["search", "find"]),
                (false, &["search"]),
                (true, &["get"]),
                (true, &["search", "get"]),
                (false, &[]),
            ],
        );
        let calls = || result.runs.iter().map(|run| &run.calls[..]);
        let found = confusions(&["get"], calls(), |name| format!("Does {name}."));
        let sentences: Vec<_> = found.iter().map(|it| it.sentence("m", 5)).collect();
        assert_eq!(
            sentences,
            [
                "m called `search` instead of `get` 2 of 5 times",
                "m did not call `get` 1 of 5 times, and called nothing else"
            ]
        );
        assert_eq!(found[0].called.as_ref().map(|it| &*it.description), Some("Does search."));
        let found = confusions(&["get", "search"], calls().take(1), |_| String::new());
        let sentences: Vec<_> = found.iter().map(|it| it.sentence("m", 1)).collect();
        assert_eq!(sentences, ["m called `find` instead of `get` 1 of 1 times"]);
        assert!(confusions(&[], calls(), |_| String::new()).is_empty());
    }
}
