//! What models do otherwise than in an earlier run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The evals of a run beside those of an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalComparison {
    /// How many tasks of a model were compared.
    pub compared: usize,
    /// What is done otherwise.
    pub changes: Vec<EvalChange>,
    /// The task and the model of what only one of the runs has played.
    pub not_compared: Vec<String>,
}

/// How often something happened before and now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalChange {
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

impl EvalComparison {
    /// Adds that of another part of the run.
    pub(crate) fn merge(&mut self, other: EvalComparison) {
        self.compared += other.compared;
        self.changes.extend(other.changes);
        self.not_compared.extend(other.not_compared);
    }
}

/// Such as ``claude: `search` is now called 3 of 5 times, before 5 of 5``.
impl fmt::Display for EvalChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EvalChange { model, tool, before, now, .. } = self;
        match tool {
            Some(tool) => write!(f, "{model}: `{tool}` is now called")?,
            None => write!(f, "{model}: the task now passes")?,
        }
        write!(f, " {} of {} times, before {} of {}", now.0, now.1, before.0, before.1)
    }
}
