//! The options of `rehearse run` for the models that play steps.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use clap::Args;

use crate::cli::{Failure, shard};
use rehearse_agent::ModelSpecError;
use rehearse_document::nearest;
use rehearse_llm::model::{Budget, RecordedAnswers, Spending};
use rehearse_report::{RunResult, eval::EvalSpending};
use rehearse_scenario::{ModelOptions, Plan};
use rehearse_system::program::quoted;

#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// Keep the answers of models in this folder and play those that are there, for which no key is needed
    #[arg(long, value_name = "FOLDER", hide_short_help = true, help_heading = "Models")]
    record_models: Option<PathBuf>,
    /// Play the answers in this folder, and ask no provider
    #[arg(long, value_name = "FOLDER", hide_short_help = true, help_heading = "Models")]
    #[arg(conflicts_with = "record_models")]
    play_models: Option<PathBuf>,
    /// Let only this model of `models` play (repeatable)
    #[arg(long = "model", value_name = "NAME", hide_short_help = true, help_heading = "Models")]
    models: Vec<String>,
    /// Ask providers nothing more after this many US dollars, by the prices in `models`
    #[arg(long, value_name = "USD", value_parser = dollars, hide_short_help = true, help_heading = "Models")]
    max_cost: Option<f64>,
    /// Ask providers nothing more after this many tokens
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Models")]
    max_tokens: Option<u64>,
    /// Say what models do otherwise than in this JSON of an earlier run
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Models")]
    against: Option<PathBuf>,
    /// One for all runs of --watch.
    #[arg(skip)]
    budget: OnceLock<Arc<Budget>>,
}

fn dollars(text: &str) -> Result<f64, String> {
    let number = text.trim_start_matches('$').parse::<f64>().ok();
    let wrong = || "write an amount of US dollars, such as 2.50".to_owned();
    number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(wrong)
}

impl ModelArgs {
    /// What the models of the selected scenarios share.
    ///
    /// # Errors
    /// No scenario has a model of that name, a key is missing, or the budget needs a price that is not there.
    pub(super) fn options(&self, plan: &Plan) -> Result<ModelOptions, Failure> {
        let scenarios: BTreeMap<_, _> = plan.cells().map(|(scenario, ..)| (&scenario.path, scenario)).collect();
        let names: Vec<_> = scenarios.values().flat_map(|it| &it.models).map(|model| model.name.as_str()).collect();
        if let Some(unknown) = self.models.iter().find(|name| !names.contains(&name.as_str())) {
            let near = nearest(unknown, &names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(Failure::Usage(format!("--model {unknown}: no scenario has it in `models`{near}")));
        }
        let folder = self.record_models.as_ref().or(self.play_models.as_ref());
        let budget = self.budget.get_or_init(|| Arc::new(Budget::new(self.max_cost, self.max_tokens)));
        let options = ModelOptions {
            recorded: folder.map(|folder| Arc::new(RecordedAnswers::new(folder))),
            only_recorded: self.play_models.is_some(),
            budget: Some(budget.clone()),
            only: self.models.clone(),
            ..ModelOptions::default()
        };
        for scenario in scenarios.values() {
            for model in scenario.used_models(&options) {
                let place = format!("{}: the model `{}`", scenario.path.display(), model.name);
                model.check(&options).map_err(|error| {
                    let hint = match error {
                        ModelSpecError::NoKey(_) => "; set it, or play recorded answers with --play-models FOLDER",
                        _ => "",
                    };
                    Failure::Usage(format!("{place}: {error}{hint}"))
                })?;
                if self.max_cost.is_some() && model.is_of_provider() && model.price.is_none() {
                    return Err(Failure::Usage(format!(
                        "{place} has no `price`, which --max-cost needs: \
                         `price: {{ input: 3, output: 15, date: 2026-11-01 }}` in US dollars for a million tokens"
                    )));
                }
            }
        }
        Ok(options)
    }

    /// Adds to a result what was spent and how it differs from the earlier one, and the options to its command lines.
    pub(super) fn complete(&self, result: &mut RunResult, plays: bool, earlier: Option<&RunResult>) {
        if let Some(earlier) = earlier {
            result.compare_evals(earlier);
        }
        let spent = self.budget.get().filter(|_| plays).map(|budget| budget.spent());
        result.spending = spent.map(|Spending { requests, tokens, cost }| EvalSpending { requests, tokens, cost });
        let folder = match (&self.record_models, &self.play_models) {
            (Some(folder), _) => Some(("--record-models", folder)),
            (None, folder) => folder.as_ref().map(|folder| ("--play-models", folder)),
        };
        let folder =
            folder.into_iter().map(|(option, folder)| format!(" {option} {}", quoted(&folder.display().to_string())));
        let models = self.models.iter().map(|name| format!(" --model {}", quoted(name)));
        let options: String = folder.chain(models).collect();
        for scenario in result.scenarios.iter_mut().filter(|_| !options.is_empty()) {
            let path = quoted(&scenario.path.display().to_string());
            scenario.again = Some(format!("rehearse run {path}{options}"));
        }
    }

    /// The result to compare with.
    ///
    /// # Errors
    /// It cannot be read, or is none of `rehearse run`.
    pub(super) fn earlier(&self) -> Result<Option<RunResult>, Failure> {
        let Some(path) = &self.against else { return Ok(None) };
        let wrong = |why: String| Failure::Usage(format!("--against {}: {why}", path.display()));
        let run = shard::read(path).map_err(wrong)?.run;
        Ok(Some(run.ok_or_else(|| wrong("it is no result of `rehearse run`".to_owned()))?))
    }
}
