//! The arguments of the tool.

use serde_json::{Map, Value as Json, json};

/// What a caller wants of a subagent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RunArguments {
    pub(super) prompt: String,
    pub(super) inputs: Vec<String>,
    pub(super) run_id: Option<String>,
}

/// The input schema of the tool.
pub(super) fn input_schema(has_run_id: bool) -> Json {
    let mut properties = json!({
        "prompt": { "type": "string", "description": "The task for the subagent." },
        "inputs": {
            "type": "array",
            "items": { "type": "string" },
            "description": "Paths or http(s) URLs of files that belong to the task.",
        },
    });
    if has_run_id {
        properties["runId"] = json!({ "type": "string", "description": "Names the run in its events." });
    }
    json!({ "type": "object", "properties": properties, "required": ["prompt"], "additionalProperties": false })
}

impl RunArguments {
    /// Reads arguments. `runId` may be there although the schema does not list it, and `inputs` may be null.
    ///
    /// # Errors
    /// The first argument that is missing, blank, of another type or unknown.
    pub(super) fn read(arguments: &Map<String, Json>) -> Result<RunArguments, String> {
        if let Some(unknown) = arguments.keys().find(|key| !["prompt", "inputs", "runId"].contains(&key.as_str())) {
            return Err(format!("unknown argument {unknown:?}; the arguments are prompt and inputs"));
        }
        let text = |key: &str| match arguments.get(key) {
            Some(Json::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
            None => Ok(None),
            Some(Json::String(_)) => Err(format!("{key} is required and cannot be empty")),
            Some(_) => Err(format!("{key} must be a string")),
        };
        let inputs = match arguments.get("inputs") {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::Array(inputs)) => inputs.iter().map(|input| input.as_str().map(str::to_owned)).collect(),
            Some(_) => None,
        };
        Ok(RunArguments {
            prompt: text("prompt")?.ok_or("prompt is required and cannot be empty")?,
            inputs: inputs.ok_or("inputs must be a list of strings")?,
            run_id: text("runId")?,
        })
    }
}
