//! The options of `rehearse run` for the models that play steps.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use clap::Args;

use crate::cli::{Failure, shard};
use rehearse_document::nearest;
use rehearse_llm::model::{Budget, RecordedAnswers};
use rehearse_report::RunResult;
use rehearse_scenario::{ModelOptions, Plan};

#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// Keep the answers of models in this folder and play those that are there, for which no key is needed
    #[arg(long, value_name = "FOLDER", hide_short_help = true, help_heading = "Models")]
    record_models: Option<PathBuf>,
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
        let options = ModelOptions {
            recorded: self.record_models.as_ref().map(|folder| Arc::new(RecordedAnswers::new(folder))),
            budget: Some(Arc::new(Budget::new(self.max_cost, self.max_tokens))),
            only: self.models.clone(),
            ..ModelOptions::default()
        };
        for scenario in scenarios.values() {
            for model in scenario.used_models(&options) {
                let place = format!("{}: the model `{}`", scenario.path.display(), model.name);
                model.check(&options).map_err(|error| {
                    Failure::Usage(format!(
                        "{place}: {error}; set it, or play recorded answers with --record-models FOLDER"
                    ))
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
