//! The result of an eval: a step that models play several times.

mod comparison;
mod confusion;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use comparison::{EvalChange, EvalComparison};
pub use confusion::{Confusion, confusions};

use crate::milliseconds::Milliseconds;

/// 1.96 standard deviations: an interval of 95 %.
const Z: f64 = 1.959_964;

/// What the runs of one model have shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelResult {
    /// The name of the model in the scenario.
    pub model: String,
    /// How many runs must pass.
    pub required: u32,
    /// The runs, in order.
    pub runs: Vec<AgentRun>,
    /// Why it was not asked any more, such as a missing key; the runs are those before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Which tools it called instead of those that were expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusions: Vec<Confusion>,
}

/// One run of a model.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRun {
    /// Whether all expectations were met.
    pub passed: bool,
    /// Those that were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What went wrong and did not end the run, such as an answer that is cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The calls of the model, in order.
    pub calls: Vec<AgentCall>,
    /// The final answer, or why there is none.
    pub answer: String,
    /// How often the model answered.
    pub turns: u32,
    /// The tokens that the model read.
    pub input_tokens: u64,
    /// The tokens that it wrote.
    pub output_tokens: u64,
    /// In US dollars, if the price of the model is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long the run took.
    #[serde(rename = "durationMs", with = "Milliseconds")]
    pub duration: Duration,
}

/// One call of a tool by a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCall {
    /// The name that the model used.
    pub tool: String,
    /// JSON, or the text that is none.
    pub arguments: Json,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// What providers were asked in the whole run, judges included, and what that took. Recorded answers do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalSpending {
    pub requests: u64,
    /// Input and output.
    pub tokens: u64,
    /// In US dollars, as far as prices are known.
    pub cost: f64,
}

impl ModelResult {
    /// How many runs passed.
    pub fn passed(&self) -> usize {
        self.runs.iter().filter(|run| run.passed).count()
    }

    /// Whether enough runs passed.
    pub fn has_passed(&self) -> bool {
        self.error.is_none() && self.passed() >= self.required as usize
    }

    /// The cost of all runs, if there are some and the price is known.
    pub fn cost(&self) -> Option<f64> {
        let (first, others) = self.runs.split_first()?;
        others.iter().try_fold(first.cost?, |sum, run| Some(sum + run.cost?))
    }

    /// The tokens of all runs, input and output.
    pub fn tokens(&self) -> u64 {
        self.runs.iter().map(|run| run.input_tokens + run.output_tokens).sum()
    }

    /// The interval in which the rate of passed runs is in 95 of 100 cases, from 0 to 1 (the score interval of Wilson,
    /// which is right for few runs, too).
    pub fn interval(&self) -> (f64, f64) {
        wilson(self.passed(), self.runs.len())
    }
}

fn wilson(passed: usize, all: usize) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (all as f64, Z * Z);
    let rate = passed as f64 / n;
    let center = (rate + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z / (1.0 + z2 / n) * (rate * (1.0 - rate) / n + z2 / (4.0 * n * n)).sqrt();
    ((center - half).max(0.0), (center + half).min(1.0))
}

#[cfg(test)]
pub(crate) fn model_result(model: &str, runs: &[(bool, &[&str])]) -> ModelResult {
    let call = |tool: &&str| AgentCall { tool: (*tool).to_owned(), arguments: Json::Null, is_error: false };
    let run = |(passed, tools): &(bool, &[&str])| AgentRun {
        passed: *passed,
        problems: Vec::new(),
        warnings: Vec::new(),
        calls: tools.iter().map(call).collect(),
        answer: String::new(),
        turns: 2,
        input_tokens: 1000,
        output_tokens: 200,
        cost: Some(0.01),
        duration: Duration::from_millis(1500),
    };
    let runs: Vec<_> = runs.iter().map(run).collect();
    ModelResult { model: model.into(), required: runs.len() as u32, runs, error: None, confusions: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_wilson() {
        // Figures of a table.
        for (passed, all, low, high) in
            [(5, 5, 0.566, 1.0), (4, 5, 0.376, 0.964), (0, 5, 0.0, 0.434), (50, 100, 0.404, 0.596), (0, 0, 0.0, 1.0)]
        {
            let (found_low, found_high) = wilson(passed, all);
            assert!(
                (found_low - low).abs() < 1e-3 && (found_high - high).abs() < 1e-3,
                "{passed}/{all}: {found_low} {found_high}"
            );
        }
    }

    #[test]
    fn a_model_that_could_not_be_asked_has_not_passed() {
        let passed = model_result("m", &[(true, &[]), (true, &[])]);
        assert!(passed.has_passed());
        let failed = ModelResult { error: Some("no key".into()), ..passed.clone() };
        assert!(!failed.has_passed());
        assert!(!model_result("m", &[(true, &[]), (false, &[])]).has_passed());
        assert!(ModelResult { required: 1, ..model_result("m", &[(true, &[]), (false, &[])]) }.has_passed());
    }
}
