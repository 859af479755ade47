//! What a step has shown, and the models that play it: enough of the runs of each must meet the expectations.

use rehearse_report::eval::ModelResult;

/// What is wrong with a step, and what models have done in it.
#[derive(Debug, Default)]
pub(crate) struct Evaluation {
    pub(crate) problems: Vec<String>,
    pub(crate) models: Vec<ModelResult>,
}

impl From<Vec<String>> for Evaluation {
    /// A step that no model has played.
    fn from(problems: Vec<String>) -> Evaluation {
        Evaluation { problems, models: Vec::new() }
    }
}

impl Evaluation {
    /// Adds what a model has done.
    pub(crate) fn add(&mut self, played: ModelResult) {
        self.problems.extend(problems(&played));
        self.models.push(played);
    }

    /// Why a model could not be asked any more.
    pub(crate) fn error(&self) -> Option<String> {
        let failed = self.models.iter().find_map(|model| Some((&model.model, model.error.as_ref()?)));
        failed.map(|(model, error)| format!("{model} cannot be asked: {error}"))
    }
}

/// Why a model has failed: how many runs passed, and what was wrong how often.
fn problems(played: &ModelResult) -> Vec<String> {
    if played.has_passed() || played.error.is_some() {
        return Vec::new();
    }
    let (passed, all) = (played.passed(), played.runs.len());
    let mut lines = vec![format!("{}: {passed} of {all} runs pass, {} must", played.model, played.required)];
    let mut counted: Vec<(&String, usize)> = Vec::new();
    for problem in played.runs.iter().flat_map(|run| &run.problems) {
        match counted.iter_mut().find(|(known, _)| *known == problem) {
            Some((_, count)) => *count += 1,
            None => counted.push((problem, 1)),
        }
    }
    lines.extend(counted.into_iter().map(|(problem, count)| match count {
        1 => format!("{}, once: {problem}", played.model),
        count => format!("{}, {count} times: {problem}", played.model),
    }));
    lines
}
