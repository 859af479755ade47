//! What models do otherwise than in an earlier run.

use std::{collections::BTreeSet, fmt};

use serde::{Deserialize, Serialize};

use super::ModelResult;
use crate::RunResult;

/// How often something happened before and now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalComparison {
    /// The scenario, the step and the cell.
    pub task: String,
    pub model: String,
    /// A tool that was called; `None`: the runs that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// In how many of how many runs.
    pub before: (usize, usize),
    pub now: (usize, usize),
}

impl RunResult {
    /// Says what the models do otherwise than in an earlier run, in the same steps and cells. Steps and models that only one
    /// of the runs has are not compared.
    pub fn compare_evals(&mut self, earlier: &RunResult) {
        let before: Vec<_> = evals(earlier).collect();
        let mut found = Vec::new();
        for (task, now) in evals(self) {
            let same = before.iter().find(|(other, result)| *other == task && result.model == now.model);
            if let Some((_, before)) = same {
                found.extend(compare(&task, before, now));
            }
        }
        self.comparisons = Some(found);
    }
}

/// What models have played, each with its task.
fn evals(result: &RunResult) -> impl Iterator<Item = (String, &ModelResult)> {
    result.scenarios.iter().flat_map(|scenario| {
        scenario.cells.iter().flat_map(move |cell| {
            cell.steps.iter().flat_map(move |step| {
                let task = format!("{}: {} in {}", scenario.name, step.title, cell.cell);
                step.models.iter().map(move |model| (task.clone(), model))
            })
        })
    })
}

fn compare(task: &str, before: &ModelResult, now: &ModelResult) -> Vec<EvalComparison> {
    let model = now.model.clone();
    let make = |tool: Option<&str>, count: &dyn Fn(&ModelResult) -> usize| {
        let [before, now] = [before, now].map(|result| (count(result), result.runs.len()));
        // 5 of 5 is 3 of 3.
        let differs = before.0 * now.1 != now.0 * before.1;
        let (task, model, tool) = (task.to_owned(), model.clone(), tool.map(str::to_owned));
        differs.then_some(EvalComparison { task, model, tool, before, now })
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

/// Such as ``claude: `search` is now called 3 of 5 times, before 5 of 5``.
impl fmt::Display for EvalComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EvalComparison { model, tool, before, now, .. } = self;
        match tool {
            Some(tool) => write!(f, "{model}: `{tool}` is now called")?,
            None => write!(f, "{model}: the task now passes")?,
        }
        write!(f, " {} of {} times, before {} of {}", now.0, now.1, before.0, before.1)
    }
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
