//! Compares what models did in two runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::RunResult;
use crate::eval::{EvalChange, EvalComparison, ModelResult};

impl RunResult {
    /// Says what the models do otherwise than in an earlier run: in the same cells, and the same steps by their number and
    /// their prompt.
    pub fn compare_evals(&mut self, earlier: &RunResult) {
        let (before, now) = (evals(earlier), evals(self));
        let mut comparison = EvalComparison::default();
        for (key, result) in &now {
            match before.get(key) {
                Some(before) => {
                    comparison.compared += 1;
                    comparison.changes.extend(compare(&key.task, before, result));
                }
                None => comparison.not_compared.push(key.to_string()),
            }
        }
        comparison.not_compared.extend(before.keys().filter(|key| !now.contains_key(key)).map(ToString::to_string));
        self.comparison = Some(comparison);
    }
}

/// What a model plays.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct EvalKey {
    /// The number of the step in its cell.
    step: usize,
    task: String,
    model: String,
}

impl fmt::Display for EvalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.task, self.model)
    }
}

/// What models have played.
fn evals(result: &RunResult) -> BTreeMap<EvalKey, &ModelResult> {
    let mut found = BTreeMap::new();
    for scenario in &result.scenarios {
        for cell in &scenario.cells {
            for (step, played) in cell.steps.iter().enumerate() {
                for model in played.models.iter().filter(|model| !model.runs.is_empty()) {
                    let task = format!("{}: {} in {}", scenario.name, played.title, cell.cell);
                    found.insert(EvalKey { step, task, model: model.model.clone() }, model);
                }
            }
        }
    }
    found
}

fn compare(task: &str, before: &ModelResult, now: &ModelResult) -> Vec<EvalChange> {
    let model = now.model.clone();
    let make = |tool: Option<&str>, count: &dyn Fn(&ModelResult) -> usize| {
        let [before, now] = [before, now].map(|result| (count(result), result.runs.len()));
        // 5 of 5 is 3 of 3.
        let differs = before.0 * now.1 != now.0 * before.1;
        let (task, model, tool) = (task.to_owned(), model.clone(), tool.map(str::to_owned));
        differs.then_some(EvalChange { task, model, tool, before, now })
    };
    let tools = [before, now].into_iter().flat_map(|result| &result.runs).flat_map(|run| &run.calls);
    let tools: BTreeSet<_> = tools.map(|call| call.tool.as_str()).collect();
    let of_tool = tools.into_iter().filter_map(|tool| {
        make(Some(tool), &|result: &ModelResult| {
            result.runs.iter().filter(|run| run.calls.iter().any(|call| call.tool == tool)).count()
        })
    });
    make(None, &ModelResult::passed).into_iter().chain(of_tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::model_result;

    #[test]
    fn a_comparison_says_what_is_done_less_often() {
        let searched: (bool, &[&str]) = (true, &["search"]);
        let before = model_result("claude", &[searched; 5]);
        let now = model_result(
            "claude",
            &[
                (true, &["search"]),
                (true, &["search", "search"]),
                (true, &["search"]),
                (false, &["find"]),
                (false, &[]),
            ],
        );
        let said: Vec<_> = compare("t", &before, &now).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "claude: the task now passes 3 of 5 times, before 5 of 5",
                "claude: `find` is now called 1 of 5 times, before 0 of 5",
                "claude: `search` is now called 3 of 5 times, before 5 of 5"
            ]
        );
        // With fewer runs, nothing is otherwise.
        assert_eq!(compare("t", &before, &model_result("claude", &[searched; 3])), []);
    }
}
