//! What a schema says about the agent of a config of CPE: `subagent` and `defaults`.

use serde_json::{Value as Json, json};

use super::described;

/// The schema of a key at the root.
pub(super) fn setting(key: &str) -> Option<Json> {
    match key {
        "subagent" => Some(subagent()),
        "defaults" => Some(defaults()),
        _ => None,
    }
}

fn subagent() -> Json {
    let count = |text: &str| described(json!({ "type": "integer", "minimum": 0 }), text);
    let text = |about: &str| described(json!({ "type": "string", "minLength": 1 }), about);
    described(
        json!({
            "type": "object",
            "required": ["name", "description"],
            "properties": {
                "name": text("The name of the tool that runs the subagent."),
                "description": text("The description of that tool."),
                "outputSchemaPath": text("The path of the JSON Schema of the answer."),
                "answerRetries": count("How many wrong answers the model may correct; only rehearse knows this key."),
                "maxTurns": count("How often the model may answer in one run; only rehearse knows this key."),
                "maxTokens": count("How many tokens one run may take; only rehearse knows this key."),
                "timeout": text("The time limit of a run, such as 10m; only rehearse knows this key."),
                "parallelToolCalls": described(
                    json!({ "type": "boolean" }),
                    "Whether the tool calls of one answer run at once; only rehearse knows this key.",
                ),
            },
        }),
        "The agent that `rehearse serve` and `cpe mcp serve` make an MCP server.",
    )
}

fn defaults() -> Json {
    let text = |about: &str| described(json!({ "type": "string" }), about);
    let code_mode = json!({
        "type": "object",
        "properties": {
            "enabled": described(json!({ "type": "boolean" }), "Whether the model writes programs that call tools."),
            "excludedTools": described(json!({ "type": "array", "items": { "type": "string" } }), "Tools that no program can call."),
            "maxTimeout": described(json!({ "type": "integer", "minimum": 1 }), "The longest run of a program, in seconds."),
        },
    });
    described(
        json!({
            "type": "object",
            "properties": {
                "model": text("The `ref` of the model."),
                "systemPromptPath": text("The path of the system prompt."),
                "timeout": text("The time limit of a request to the model, such as 5m."),
                "generationParams": described(json!({ "type": "object" }), "How the model answers: temperature, topP, …"),
                "codeMode": described(code_mode, "Code mode."),
            },
        }),
        "The model of the agent, and how it runs.",
    )
}
