//! Tools.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{
    Judge,
    common::{each_item, error_code, is_mime, is_refused_elsewhere, items, readings, shown, unique},
};
use crate::{Call, Case, Evidence, Judgement, Lane, Level, Material};

const LIST: &str = "tools/list";
const CALL: &str = "tools/call";
const HEADER: &str = "x-mcp-header";
const DIALECTS: [&str; 5] =
    ["2020-12/schema", "2019-09/schema", "draft-07/schema", "draft-06/schema", "draft-04/schema"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("tools.list.name-unique", |e, j| unique(e, j, LIST)),
    ("tools.list.name-length", |e, j| names(e, j, |name| (1..=128).contains(&name.chars().count()))),
    ("tools.list.name-charset", |e, j| {
        names(e, j, |name| name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-.".contains(&it)));
    }),
    ("tools.list.deterministic-order", order),
    ("tools.list.description-present", |e, j| {
        each_item(e, j, LIST, |it| it["description"].as_str().is_some_and(|it| !it.is_empty()), |_| "none".to_owned());
    }),
    ("tools.input.type-object", |e, j| schemas(e, j, "inputSchema", |schema| schema["type"] == "object")),
    ("tools.input.not-null", |e, j| schemas(e, j, "inputSchema", Value::is_object)),
    ("tools.input.valid-schema", |e, j| schemas(e, j, "inputSchema", is_valid_schema)),
    ("tools.input.known-dialect", |e, j| with_member(e, j, "$schema", |_, dialect| is_known(dialect))),
    ("tools.input.no-external-ref", |e, j| {
        with_member(e, j, "$ref", |_, it| it.as_str().is_none_or(|it| !it.starts_with("http")));
    }),
    ("tools.input.local-ref-resolves", |e, j| with_member(e, j, "$ref", resolves)),
    ("tools.input.required-in-properties", |e, j| {
        schemas(e, j, "inputSchema", |schema| {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            required.into_iter().all(|name| schema["properties"].get(name).is_some())
        });
    }),
    ("tools.output.type-object", |e, j| schemas(e, j, "outputSchema", |schema| schema["type"] == "object")),
    ("tools.output.valid-schema", |e, j| schemas(e, j, "outputSchema", is_valid_schema)),
    ("tools.annotations.types", annotation_types),
    ("tools.annotations.consistent", |e, j| {
        let both =
            |it: &Value| it["annotations"]["readOnlyHint"] == true && it["annotations"]["destructiveHint"] == true;
        each_item(e, j, LIST, |it| !both(it), |_| "both".to_owned());
    }),
    ("tools.execution.task-support-enum", |e, j| {
        for (item, name, call) in items(e, LIST) {
            let Some(support) = item["execution"].get("taskSupport") else { continue };
            let holds = support.as_str().is_some_and(|it| ["forbidden", "optional", "required"].contains(&it));
            j.check_at(holds, Some(name.to_owned()), call.places(), || shown(support));
        }
    }),
    ("tools.header.not-empty", |e, j| headers(e, j, |it| it.name.as_str().is_some_and(|name| !name.is_empty()))),
    ("tools.header.token", |e, j| headers(e, j, |it| it.name.as_str().is_none_or(is_token))),
    ("tools.header.unique", unique_headers),
    ("tools.header.primitive", |e, j| {
        headers(e, j, |it| ["integer", "string", "boolean"].iter().any(|kind| it.schema["type"] == *kind));
    }),
    ("tools.header.reachable", |e, j| headers(e, j, |it| it.is_reachable)),
    ("tools.call.unknown-name-error", unknown_tool),
    ("tools.call.unknown-name-32602", unknown_code),
    ("tools.call.missing-name", |e, j| error_code(e, j, "bad-params/call-without-name", &[-32602, -32600, -32020])),
    ("tools.call.arguments-wrong-type", |e, j| {
        for call in e.case("unknown-names/tool-array").filter(|call| call.response.is_some()) {
            let is_error = call.error_code().is_some() || is_tool_error(&call);
            j.check_call(is_error, &call);
        }
    }),
    ("tools.call.works", |e, j| {
        for call in valid_calls(e).filter(|call| call.is_answered()) {
            j.check_at(call.response.is_some(), name(&call), call.places(), || call.answer_text());
        }
    }),
    ("tools.call.invalid-args-rejected", |e, j| {
        for call in e.case("calls/invalid-arguments").filter(|call| call.response.is_some()) {
            j.check_at(call.error_code().is_some() || is_tool_error(&call), name(&call), call.places(), || {
                call.answer_text()
            });
        }
    }),
    ("tools.call.error-has-content", |e, j| {
        for (call, result) in e.results_of(CALL).filter(|(_, result)| result["isError"] == true) {
            let mut blocks = result["content"].as_array().into_iter().flatten();
            let has_text = blocks.any(|block| block["text"].as_str().is_some_and(|text| !text.trim().is_empty()));
            j.check_at(has_text, name(&call), call.places(), || "no text".to_owned());
        }
    }),
    ("tools.call.iserror-boolean", |e, j| {
        for (call, result) in e.results_of(CALL) {
            if let Some(is_error) = result.get("isError") {
                j.check_at(is_error.is_boolean(), name(&call), call.places(), || {
                    format!("`isError: {}`", shown(is_error))
                });
            }
        }
    }),
    ("tools.call.structured-matches-schema", matches_schema),
    ("tools.call.structured-present", structured_present),
    ("tools.call.structured-object", |e, j| {
        for (call, result) in e.results_of(CALL) {
            if let Some(content) = result.get("structuredContent") {
                j.check_at(content.is_object(), name(&call), call.places(), || shown(content));
            }
        }
    }),
    ("tools.call.structured-has-text", has_text),
    ("tools.call.content-present", |e, j| {
        for (call, result) in complete_results(e) {
            j.check_at(result["content"].is_array(), name(&call), call.places(), || "no array".to_owned());
        }
    }),
    ("tools.call.mime-valid", |e, j| {
        for (call, result) in e.results_of(CALL) {
            for block in result["content"].as_array().into_iter().flatten() {
                for owner in [block, &block["resource"]] {
                    if let Some(mime) = owner["mimeType"].as_str() {
                        j.check_at(is_mime(mime), name(&call), call.places(), || format!("{mime:?}"));
                    }
                }
            }
        }
    }),
    ("tools.call.embedded-needs-resources", |e, j| {
        let is_declared = e.facts.declares("resources");
        for (call, result) in e.results_of(CALL) {
            let mut blocks = result["content"].as_array().into_iter().flatten();
            if blocks.any(|block| block["type"] == "resource") {
                j.check_at(is_declared, name(&call), call.places(), || "a resource".to_owned());
            }
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("tools") {
        return Vec::new();
    }
    let unknown = material.unknown_name();
    let mut cases = vec![
        Case::request("unknown-names/tool", Lane::Negative, CALL, json!({ "name": unknown, "arguments": {} })),
        Case::request("unknown-names/tool-array", Lane::Negative, CALL, json!({ "name": unknown, "arguments": [1] })),
        Case::request("bad-params/call-without-name", Lane::Negative, CALL, json!({ "arguments": {} })),
    ];
    for (name, _) in &material.callable {
        let tool = material.tools.iter().find(|tool| tool["name"] == **name);
        let Some(schema) = tool.map(|tool| &tool["inputSchema"]) else { continue };
        if let Some(arguments) = invalid_arguments(schema) {
            let params = Material::call_params(name, &arguments);
            cases.push(Case::request(format!("calls/invalid-arguments/{name}"), Lane::Calls, CALL, params));
        }
    }
    cases
}

/// Arguments that the schema does not allow: none at all, or one of a wrong type.
fn invalid_arguments(schema: &Value) -> Option<Value> {
    let properties = schema["properties"].as_object()?;
    let wrong = properties.iter().map(|(name, property)| {
        let value = if property["type"] == "object" { json!("rehearse") } else { json!({ "rehearse": 1 }) };
        json!({ name: value })
    });
    let mut candidates = [json!({})].into_iter().chain(wrong);
    candidates.find(|arguments| jsonschema::validator_for(schema).is_ok_and(|it| !it.is_valid(arguments)))
}

fn name(call: &Call<'_>) -> Option<String> {
    call.request.at("/params/name").as_str().map(ToOwned::to_owned)
}

fn is_tool_error(call: &Call<'_>) -> bool {
    call.result().is_some_and(|result| result["isError"] == true)
}

fn valid_calls<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Call<'e>> {
    evidence.calls_of(CALL).filter(|call| call.request.case.is_none())
}

/// The results that are neither questions nor tasks.
fn complete_results<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.results_of(CALL).filter(|(_, result)| {
        !matches!(result["resultType"].as_str(), Some("input_required" | "task")) && result.get("task").is_none()
    })
}

fn names(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str) -> bool) {
    let found = |it: &Value| format!("the name {}", shown(&it["name"]));
    each_item(evidence, j, LIST, |it| it["name"].as_str().is_none_or(&holds), found);
}

fn order(evidence: &Evidence<'_>, j: &mut Judgement) {
    let mut first: Option<Vec<&str>> = None;
    for reading in readings(evidence, LIST) {
        let tools = reading.pages.iter().flat_map(|(_, result)| result["tools"].as_array().into_iter().flatten());
        let names: Vec<_> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        let Some(first) = &first else {
            first = Some(names);
            continue;
        };
        let (one, other): (HashSet<_>, HashSet<_>) = (first.iter().collect(), names.iter().collect());
        // Other tools are another matter than another order.
        if let (true, Some((call, _))) = (one == other && first.len() > 1, reading.pages.first()) {
            j.check_at(*first == names, None, call.places(), || "another order".to_owned());
        }
    }
}

fn schemas(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for (tool, name, call) in items(evidence, LIST) {
        let schema = match tool.get(key) {
            Some(schema) => schema,
            None if key == "inputSchema" => &Value::Null,
            None => continue,
        };
        if !j.violations.iter().any(|it| it.subject.as_deref() == Some(name)) {
            j.check_at(holds(schema), Some(name.to_owned()), call.places(), || shown(schema));
        }
    }
}

fn is_known(dialect: &Value) -> bool {
    dialect.as_str().is_some_and(|it| DIALECTS.iter().any(|known| it.trim_end_matches('#').ends_with(known)))
}

/// Whether a schema is valid in its dialect; one of an unknown dialect is not judged.
fn is_valid_schema(schema: &Value) -> bool {
    schema.get("$schema").is_some_and(|dialect| !is_known(dialect)) || jsonschema::meta::is_valid(schema)
}

/// Checks every member of this name in the input schemas.
fn with_member(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value, &Value) -> bool) {
    for (tool, name, call) in items(evidence, LIST) {
        let schema = &tool["inputSchema"];
        let mut found = Vec::new();
        subschemas(schema, &mut |it| found.extend(it.get(key)));
        for value in found {
            j.check_at(holds(schema, value), Some(name.to_owned()), call.places(), || shown(value));
        }
    }
}

/// Visits a schema and those in it. Values that only look like schemas are left out.
fn subschemas<'v>(schema: &'v Value, visit: &mut impl FnMut(&'v serde_json::Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    visit(members);
    for (key, value) in members {
        match (key.as_str(), value) {
            ("const" | "enum" | "default" | "examples", _) => {}
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                schemas.values().for_each(|schema| subschemas(schema, visit));
            }
            (_, Value::Object(_)) => subschemas(value, visit),
            (_, Value::Array(schemas)) => schemas.iter().for_each(|schema| subschemas(schema, visit)),
            _ => {}
        }
    }
}

fn resolves(schema: &Value, reference: &Value) -> bool {
    let Some(pointer) = reference.as_str().and_then(|it| it.strip_prefix('#')) else { return true };
    let has_base = schema.get("$id").is_some();
    // An anchor, or a pointer below another base, is not followed.
    has_base
        || !(pointer.is_empty() || pointer.starts_with('/'))
        || schema.pointer(&pointer.replace("%24", "$")).is_some()
}

fn annotation_types(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(evidence, LIST) {
        let Some(annotations) = tool["annotations"].as_object() else { continue };
        for (key, value) in annotations {
            let holds = match key.as_str() {
                "title" => value.is_string(),
                "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => value.is_boolean(),
                _ => true,
            };
            j.check_at(holds, Some(name.to_owned()), call.places(), || format!("`{key}: {}`", shown(value)));
        }
    }
}

/// An `x-mcp-header` of a schema.
struct Header<'v> {
    name: &'v Value,
    schema: &'v Value,
    /// Whether it stands below `properties` alone.
    is_reachable: bool,
}

fn find_headers<'v>(schema: &'v Value, is_reachable: bool, out: &mut Vec<Header<'v>>) {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get(HEADER) {
                out.push(Header { name, schema, is_reachable });
            }
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("properties", Value::Object(properties)) => {
                        properties.values().for_each(|it| find_headers(it, is_reachable, out));
                    }
                    ("$defs" | "definitions" | "patternProperties", Value::Object(schemas)) => {
                        schemas.values().for_each(|it| find_headers(it, false, out));
                    }
                    _ => find_headers(value, false, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_headers(item, false, out)),
        _ => {}
    }
}

fn headers(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Header<'_>) -> bool) {
    for (tool, name, call) in items(evidence, LIST) {
        let mut found = Vec::new();
        find_headers(&tool["inputSchema"], true, &mut found);
        for header in found {
            j.check_at(holds(&header), Some(name.to_owned()), call.places(), || {
                format!("`{HEADER}: {}`", shown(header.name))
            });
        }
    }
}

fn is_token(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it))
}

fn unique_headers(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(evidence, LIST) {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        find_headers(&tool["inputSchema"], true, &mut found);
        for header in found.iter().filter_map(|header| header.name.as_str()) {
            let is_new = seen.insert(header.to_ascii_lowercase());
            j.check_at(is_new, Some(name.to_owned()), call.places(), || format!("the header {header:?} twice"));
        }
    }
}

fn unknown_tool(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("unknown-names/tool") {
        if call.response.is_none() || is_refused_elsewhere(&call) {
            continue;
        }
        j.check_call(call.error_code().is_some(), &call);
        if call.result().is_some() && !is_tool_error(&call) {
            j.at_level(Level::Must);
        }
    }
}

fn unknown_code(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("unknown-names/tool") {
        if let Some(code) = call.error_code() {
            j.check_call(code == -32602, &call);
        }
    }
}

/// The output schema of each tool.
fn output_schemas<'e>(evidence: &'e Evidence<'_>) -> HashMap<&'e str, &'e Value> {
    items(evidence, LIST).filter_map(|(tool, name, _)| Some((name, tool.get("outputSchema")?))).collect()
}

fn results_with_schema<'e>(evidence: &'e Evidence<'_>) -> Vec<(Call<'e>, &'e Value, &'e Value)> {
    let schemas = output_schemas(evidence);
    let results = complete_results(evidence).filter(|(_, result)| result["isError"] != true);
    results
        .filter_map(|(call, result)| {
            let schema = schemas.get(call.request.at("/params/name").as_str()?)?;
            Some((call, result, *schema))
        })
        .collect()
}

fn matches_schema(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result, schema) in results_with_schema(evidence) {
        let Some(content) = result.get("structuredContent") else { continue };
        if let Ok(validator) = jsonschema::validator_for(schema) {
            let error = validator.validate(content).err().map(|error| error.to_string());
            j.check_at(error.is_none(), name(&call), call.places(), || error.unwrap_or_default());
        }
    }
}

fn structured_present(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result, _) in results_with_schema(evidence) {
        j.check_at(result.get("structuredContent").is_some(), name(&call), call.places(), || "none".to_owned());
    }
}

fn has_text(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in evidence.results_of(CALL) {
        let Some(content) = result.get("structuredContent") else { continue };
        let texts = result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
        let is_there = texts.into_iter().any(|text| serde_json::from_str::<Value>(text).is_ok_and(|it| it == *content));
        j.check_at(is_there, name(&call), call.places(), || "no text block with the same JSON".to_owned());
    }
}
