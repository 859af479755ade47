//! What a config of CPE says about the agent itself: `models`, `defaults`, `subagent`.

use std::collections::HashSet;

use super::CheckedConfig;
use crate::{codes, dialect::is_note};
use rehearse_document::{Entry, Node, Value, nearest, references};
use rehearse_report::findings::Finding;

/// The keys of every version, by the object that they are in.
const KEYS: &[(&str, &str)] = &[
    ("", "version models defaults subagent mcpServers"),
    (
        "models",
        "ref display_name id type name base_url api_key_env auth_method context_window max_output input_cost_per_million \
         output_cost_per_million cache_read_cost_per_million cache_write_cost_per_million supports_reasoning \
         default_reasoning_effort disable_edit_tool vertex patchRequest thinkingValues mcpServers systemPromptPath \
         generationDefaults generationParams timeout codeMode compaction flightRecorder",
    ),
    (
        "defaults",
        "model systemPromptPath generationParams timeout noStream codeMode compaction conversationStoragePath \
         flightRecorder",
    ),
    ("subagent", "name description outputSchemaPath answerRetries maxTurns maxTokens timeout parallelToolCalls"),
    ("generationParams", GENERATION),
    ("generationDefaults", GENERATION),
    ("codeMode", "enabled excludedTools localModulePaths maxTimeout largeOutputCharLimit"),
];

const GENERATION: &str = "temperature topP topK frequencyPenalty presencePenalty n numberOfResponses maxGenerationTokens \
                          maxTokens toolChoice stopSequences thinkingBudget";

pub(super) fn check(checked: &CheckedConfig<'_>, findings: &mut Vec<Finding>) {
    // Keys that look like servers are reported already.
    let reported: HashSet<_> = findings.iter().map(|finding| finding.problem.span.start).collect();
    unknown_keys("", checked.root, &mut |entry, known| {
        if reported.contains(&entry.key_span.start) {
            return;
        }
        let message = format!("unknown key `{}`", entry.key);
        findings.push(match nearest(&entry.key, known) {
            Some(near) => codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("did you mean `{near}`?")),
            None => codes::EXTRA_KEY.at(entry.key_span, message).hint("newer versions of CPE reject the file for it"),
        });
    });
    version(checked.root, findings);
    let known = models(checked.root, findings);
    let default = checked.root.get("defaults").and_then(|defaults| defaults.get("model"));
    if let Some((node, Some(model))) = default.map(|node| (node, node.as_str()))
        && references(model).next().is_none()
        && !known.contains(model)
    {
        let known: Vec<_> = known.into_iter().collect();
        let finding = codes::MODEL.at(node.span, format!("no model has the ref `{model}`"));
        findings.push(match nearest(model, &known) {
            Some(near) => finding.hint(format!("did you mean `{near}`?")),
            None => finding.hint("describe it under `models`"),
        });
    }
    let mut entries = checked.root.as_entries().unwrap_or_default().iter();
    if let Some(agent) = entries.find(|entry| entry.key == "subagent") {
        subagent(agent, findings);
    }
}

/// Reports keys that no version knows, in an object of this name and in those below it.
fn unknown_keys<'n>(name: &str, node: &'n Node, report: &mut impl FnMut(&'n Entry, &[&str])) {
    let Some((_, known)) = KEYS.iter().find(|(object, _)| *object == name) else { return };
    let known: Vec<_> = known.split(' ').collect();
    for item in node.as_items().unwrap_or_default() {
        unknown_keys(name, item, report);
    }
    for entry in node.as_entries().unwrap_or_default() {
        match known.contains(&&*entry.key) {
            true => unknown_keys(&entry.key, &entry.node, report),
            false if is_note(&entry.key) => {}
            false => report(entry, &known),
        }
    }
}

/// Reports a version of the format that there is not.
fn version(root: &Node, findings: &mut Vec<Finding>) {
    let Some(node) = root.get("version").filter(|node| !node.is_null()) else { return };
    let is_known = match &node.value {
        Value::String(text) | Value::Number(text) => text == "1.0" || references(text).next().is_some(),
        _ => false,
    };
    if !is_known {
        let finding = codes::IGNORED.at(node.span, "CPE has no such version of the format");
        findings.push(finding.hint("write \"version\": \"1.0\""));
    }
}

/// The names of all models.
fn models<'n>(root: &'n Node, findings: &mut Vec<Finding>) -> HashSet<&'n str> {
    let mut known = HashSet::new();
    let Some(list) = root.get("models") else { return known };
    let Some(items) = list.as_items() else {
        let message = format!("`models` must be an array, found {}", list.kind());
        findings.push(codes::VALUE_TYPE.at(list.span, message).hint("begin each model with `- ref: …`"));
        return known;
    };
    for model in items {
        match model.get("ref").and_then(|node| Some((node, node.as_str()?))) {
            Some((_, name)) if known.insert(name) => {}
            Some((node, name)) => {
                let finding = codes::MODEL.at(node.span, format!("another model has the ref `{name}` already"));
                findings.push(finding.hint("rename one of them"));
            }
            None => match model.get("ref").filter(|node| !node.is_null()) {
                Some(node) => findings.push(not_text("ref", node)),
                None => {
                    findings
                        .push(codes::MODEL.at(model.span, "a model needs a `ref`").hint("`defaults.model` names it"));
                }
            },
        }
    }
    known
}

fn subagent(entry: &Entry, findings: &mut Vec<Finding>) {
    let agent = &entry.node;
    if agent.as_entries().is_none() {
        let message = format!("`subagent` must be an object, found {}", agent.kind());
        findings.push(codes::VALUE_TYPE.at(agent.span, message).hint("write `name: …` and `description: …` below it"));
        return;
    }
    for key in ["name", "description"] {
        if let Some(node) = agent.get(key).filter(|node| !node.is_null() && node.as_str().is_none()) {
            findings.push(not_text(key, node));
            continue;
        }
        let text = agent.get(key).and_then(Node::as_str).unwrap_or_default();
        if text.trim().is_empty() {
            let span = agent.get(key).map_or(entry.key_span, |node| node.span);
            let finding = codes::SUBAGENT.at(span, format!("the subagent needs a `{key}`"));
            findings.push(finding.hint("clients see it as a tool"));
        }
    }
}

fn not_text(key: &str, node: &Node) -> Finding {
    let message = format!("`{key}` must be a string, found {}", node.kind());
    let is_collection = node.as_entries().is_some() || node.as_items().is_some();
    codes::VALUE_TYPE.at(node.span, message).hint(if is_collection { "write a text" } else { "write it in quotes" })
}
