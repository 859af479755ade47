//! The arguments of the tool.

use serde_json::{Map, Value as Json};

/// What a caller wants of a subagent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunArguments {
    pub(super) prompt: String,
    pub(super) inputs: Vec<String>,
    pub(super) run_id: Option<String>,
}

impl RunArguments {
    /// Reads arguments that are valid by the input schema.
    ///
    /// # Errors
    /// The prompt, or the id of the run, is blank.
    pub(super) fn read(arguments: &Map<String, Json>) -> Result<RunArguments, &'static str> {
        let text = |key: &str| arguments.get(key).and_then(Json::as_str);
        let inputs = arguments.get("inputs").and_then(Json::as_array).into_iter().flatten();
        let prompt = text("prompt").filter(|prompt| !prompt.trim().is_empty());
        if text("runId").is_some_and(|id| id.trim().is_empty()) {
            return Err("runId is required and cannot be empty");
        }
        Ok(RunArguments {
            prompt: prompt.ok_or("prompt is required and cannot be empty")?.to_owned(),
            inputs: inputs.filter_map(Json::as_str).map(str::to_owned).collect(),
            run_id: text("runId").map(str::to_owned),
        })
    }
}
