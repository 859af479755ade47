//! Tools.

use std::collections::{HashMap, HashSet};

use rehearse_document::json_schema::{accepts, compile, compile_with_formats};
use rehearse_protocol::Version;
use serde_json::{Value, json};

use super::Judge;
use super::changes::{notifies, spurious};
use super::common::{
    bytes_of, each_item, is_mime, is_one_of, is_text, items, may_be_resumed, readings, shown, survives,
    tool_works as works, unique,
};
use super::query::{Calls, Named, Parts, Query, elements};
use super::tool_schema::{
    extent, headers, is_known, is_token, no_secrets, primitive_headers, resolves, safe_integers, schemas,
    unique_headers, valid_schemas, with_member,
};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Level, Material};

const LIST: &str = "tools/list";
const CALL: &str = "tools/call";
const CHANGED: &str = "notifications/tools/list_changed";
/// How deep a schema may be, and of how many schemas it may consist, until it is a burden.
const BOUNDS: (usize, usize) = (32, 5000);

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("tools.list.name-unique", |e, j| unique(e, j, LIST)),
    ("tools.list.name-length", |e, j| names(e, j, |name| (1..=128).contains(&name.chars().count()))),
    ("tools.list.name-charset", |e, j| {
        names(e, j, |name| name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-.".contains(&it)))
    }),
    ("tools.list.deterministic-order", order),
    ("tools.list.description-present", |e, j| each_item(e, j, LIST, |it| is_text(&it["description"]), |_| "none")),
    ("tools.input.type-object", |e, j| schemas(e, j, "inputSchema", |schema| schema["type"] == "object")),
    ("tools.input.not-null", |e, j| schemas(e, j, "inputSchema", Value::is_object)),
    ("tools.input.valid-schema", |e, j| valid_schemas(e, j, "inputSchema")),
    ("tools.input.known-dialect", |e, j| with_member(e, j, "$schema", |_, dialect| is_known(dialect))),
    ("tools.input.no-external-ref", |e, j| {
        with_member(e, j, "$ref", |schema, it| {
            let own = schema["$id"].as_str().map(|id| id.trim_end_matches('#')).filter(|id| !id.is_empty());
            it.as_str().is_none_or(|it| !it.starts_with("http") || own.is_some_and(|own| it.starts_with(own)))
        });
    }),
    ("tools.input.local-ref-resolves", |e, j| with_member(e, j, "$ref", resolves)),
    ("tools.input.required-in-properties", |e, j| {
        schemas(e, j, "inputSchema", |schema| {
            let mut required = elements(&schema["required"]).filter_map(Value::as_str);
            required.all(|name| schema["properties"].get(name).is_some())
        });
    }),
    ("tools.output.type-object", |e, j| schemas(e, j, "outputSchema", |schema| schema["type"] == "object")),
    ("tools.output.valid-schema", |e, j| valid_schemas(e, j, "outputSchema")),
    ("tools.annotations.types", |e, j| {
        for (tool, name, call) in items(e, LIST) {
            let Some(annotations) = tool["annotations"].as_object() else { continue };
            for (key, value) in annotations {
                let holds = match key.as_str() {
                    "title" => value.is_string(),
                    "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => value.is_boolean(),
                    _ => true,
                };
                j.check_at(holds, Some(name), call.places(), || format!("`{key}: {}`", shown(value)));
            }
        }
    }),
    ("tools.annotations.consistent", |e, j| {
        let is = |it: &Value, hint: &str| it["annotations"][hint] == true;
        each_item(e, j, LIST, |it| !is(it, "readOnlyHint") || !is(it, "destructiveHint"), |_| "both");
    }),
    ("tools.execution.task-support-enum", |e, j| {
        let is_known = |it: &Value| is_one_of(it, &["forbidden", "optional", "required"]);
        items(e, LIST).at("execution").member("taskSupport").must(j, is_known, shown);
    }),
    ("tools.header.not-empty", |e, j| headers(e, j, |header, _| header.as_str().is_some_and(|it| !it.is_empty()))),
    ("tools.header.token", |e, j| headers(e, j, |header, _| header.as_str().is_none_or(is_token))),
    ("tools.header.unique", unique_headers),
    ("tools.header.primitive", primitive_headers),
    ("tools.header.reachable", |e, j| headers(e, j, |_, it| it.is_reachable)),
    ("tools.call.unknown-name-error", |e, j| {
        for call in e.case("unknown-names/tool").reached() {
            j.check_call(call.has_error(), &call);
            j.at_level_if(call.has_result() && !is_tool_error(&call), Level::Must);
        }
    }),
    ("tools.call.unknown-name-32602", |e, j| {
        e.case("unknown-names/tool").filter(Call::has_error).must_get(j, |call| call.error_code() == Some(-32602))
    }),
    ("tools.call.missing-name", |e, j| e.case("bad-params/call-without-name").responded().must_get(j, Call::has_error)),
    ("tools.call.arguments-wrong-type", |e, j| e.case("unknown-names/tool-array").responded().must_get(j, is_refused)),
    ("tools.call.arguments-survives", |e, j| {
        survives(e, j, "malformed/arguments");
        // Over HTTP a server may live on and fail at every request.
        let control = e.case("malformed/control-arguments").find(|call| call.status() >= Some(500));
        let Some((control, call)) = control.zip(e.case("malformed/arguments").last()) else { return };
        let was_served = e.calls_of(control.method()).plain().any(|call| call.is_served());
        let places = call.places().into_iter().chain(control.places()).collect();
        j.check_at(!was_served, call.request.case, places, || {
            format!("{} for each request after it", control.answer_text())
        });
    }),
    ("tools.call.works", |e, j| {
        // A tool may fail, but it is there.
        let is_called = |call: &Call<'_>| call.response.is_some() && call.error_code() != Some(-32601);
        let calls = e.calls_of(CALL).plain().filter(|call| call.is_answered() && !may_be_resumed(e, call));
        calls.by(name).must_get(j, is_called);
    }),
    ("tools.call.invalid-args-rejected", |e, j| {
        e.case("calls/invalid-arguments").responded().by(name).must_get(j, is_refused)
    }),
    ("tools.call.error-has-content", |e, j| {
        let is_text = |it: &Value| it["text"].as_str().is_some_and(|text| !text.trim().is_empty());
        let has_text = |it: &Value| elements(&it["content"]).any(is_text);
        results(e).having(|it| it["isError"] == true).must(j, has_text, |_| "no text");
    }),
    ("tools.call.iserror-boolean", |e, j| {
        results(e).member("isError").must(j, Value::is_boolean, |it| format!("`isError: {}`", shown(it)))
    }),
    ("tools.call.structured-matches-schema", |e, j| {
        for (call, result, schema) in results_with_schema(e) {
            let Some(content) = result.get("structuredContent") else { continue };
            if let Ok(validator) = compile(schema) {
                let error = validator.validate(content).err().map(|error| error.to_string());
                let is_wrong = error.is_some();
                j.check_at(!is_wrong, name(&call), call.places(), || error.unwrap_or_default());
                // Only a client that compares it, whatever the result says, cannot read such an error.
                j.at_level_if(is_wrong && result["isError"] == true, Level::Derived);
            }
        }
    }),
    ("tools.call.structured-formats", |e, j| {
        for (call, result, schema) in results_with_schema(e) {
            let (Some(content), Ok(with), Ok(without)) =
                (result.get("structuredContent"), compile_with_formats(schema), compile(schema))
            else {
                continue;
            };
            let error = with.validate(content).err().filter(|_| without.is_valid(content)).map(|it| it.to_string());
            j.check_at(error.is_none(), name(&call), call.places(), || error.unwrap_or_default());
        }
    }),
    ("tools.call.structured-present", |e, j| {
        for (call, result, _) in results_with_schema(e).into_iter().filter(|(_, result, _)| result["isError"] != true) {
            j.check_at(result.get("structuredContent").is_some(), name(&call), call.places(), || "none");
        }
    }),
    ("tools.call.structured-object", |e, j| results(e).member("structuredContent").must(j, Value::is_object, shown)),
    ("tools.call.structured-has-text", has_text),
    ("tools.call.content-present", |e, j| {
        complete_results(e).by(name).must(j, |it| it["content"].is_array(), |_| "no array")
    }),
    ("tools.call.mime-valid", |e, j| {
        for (call, result) in e.results_of(CALL) {
            for block in elements(&result["content"]) {
                for owner in [block, &block["resource"]] {
                    let Some(mime) = owner["mimeType"].as_str() else { continue };
                    j.check_at(is_mime(mime), name(&call), call.places(), || format!("{mime:?}"));
                }
            }
        }
    }),
    ("tools.call.embedded-needs-resources", |e, j| {
        let is_declared = e.facts.declares("resources");
        let has_resource = |it: &Value| elements(&it["content"]).any(|block| block["type"] == "resource");
        results(e).having(has_resource).must(j, |_| is_declared, |_| "a resource");
    }),
    ("tools.list.name-case-collision", |e, j| {
        let mut seen: HashMap<String, &str> = HashMap::new();
        for (_, name, call) in items(e, LIST) {
            let other = *seen.entry(name.to_lowercase()).or_insert(name);
            j.check_at(other == name, Some(name), call.places(), || format!("{other:?} as well"));
        }
    }),
    ("tools.list.order-legacy", order),
    ("tools.list.title-precedence", |e, j| {
        for (tool, name, call) in items(e, LIST) {
            if let (Some(title), Some(other)) = (tool["title"].as_str(), tool["annotations"]["title"].as_str()) {
                j.check_at(title == other, Some(name), call.places(), || format!("{title:?} and {other:?}"));
            }
        }
    }),
    ("tools.input.bounded", |e, j| {
        schemas(e, j, "inputSchema", |schema| {
            let (depth, count) = extent(schema);
            depth <= 2 * BOUNDS.0 && count <= BOUNDS.1
        });
    }),
    ("tools.header.safe-integer", safe_integers),
    ("tools.header.no-secrets", no_secrets),
    ("tools.call.name-case-sensitive", |e, j| {
        e.case("unknown-names/tool-case").responded().by(name).must_get(j, is_refused)
    }),
    ("tools.call.arguments-optional", |e, j| {
        e.case("calls/no-arguments").reached().by(name).must_get(j, |call| call.error_code() != Some(-32602))
    }),
    ("tools.call.invalid-args-is-tool-error", |e, j| {
        // Another error may be about anything, such as a service that the tool does not reach.
        let is_about_arguments = |call: &Call<'_>| call.error_code().is_none_or(|code| code == -32602);
        let calls = e.case("calls/invalid-arguments").responded().filter(is_about_arguments);
        calls.by(name).must_get(j, |call| !call.has_error());
    }),
    ("tools.call.image-magic", |e, j| {
        for (call, result) in e.results_of(CALL) {
            for block in elements(&result["content"]).filter(|it| it["type"] == "image") {
                let Some(bytes) = block["data"].as_str().and_then(bytes_of) else { continue };
                let mime = block["mimeType"].as_str().unwrap_or_default();
                let begins: &[u8] = match mime {
                    "image/png" => b"\x89PNG",
                    "image/jpeg" => b"\xff\xd8",
                    "image/gif" => b"GIF8",
                    "image/webp" => b"RIFF",
                    _ => continue,
                };
                j.check_at(bytes.starts_with(begins), name(&call), call.places(), || format!("no {mime}"));
            }
        }
    }),
    ("tools.call.concurrent", |e, j| {
        // Calls that were sent before the first was answered.
        let is_any_answered = e.case("calls/parallel").any(|call| call.response.is_some());
        let calls = e.case("calls/parallel").filter(|call| is_any_answered && works(e, call));
        calls.by(name).must_get(j, Call::has_result);
    }),
    ("tools.call.idempotent-hint", |e, j| {
        e.case("calls/again").responded().filter(|call| works(e, call)).by(name).must_get(j, Call::has_result)
    }),
    ("tools.call.undeclared-task-param-ignored", |e, j| {
        for call in e.case("calls/task-param").filter(|call| call.response.is_some() && works(e, call)) {
            let is_ordinary = call.result().is_some_and(|result| result.get("task").is_none());
            j.check_at(is_ordinary, name(&call), call.places(), || match call.result() {
                Some(_) => "a task".to_owned(),
                None => call.answer_text(),
            });
        }
    }),
    ("tools.changed.notifies", |e, j| notifies(e, j, LIST, CHANGED)),
    ("tools.changed.spurious", |e, j| spurious(e, j, LIST, CHANGED)),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.declares("tools") {
        return Vec::new();
    }
    let unknown = material.unknown_name();
    let mut cases = vec![
        Case::request("unknown-names/tool", CaseGroup::Negative, CALL, json!({ "name": unknown, "arguments": {} })),
        Case::request(
            "unknown-names/tool-array",
            CaseGroup::Negative,
            CALL,
            json!({ "name": unknown, "arguments": [1] }),
        ),
        Case::request("bad-params/call-without-name", CaseGroup::Negative, CALL, json!({ "arguments": {} })),
    ];
    let name = material.callable.first().map_or(&unknown, |(name, _)| name);
    let odd = |(case, arguments)| {
        let params = json!({ "name": name, "arguments": arguments });
        Case::request(format!("malformed/arguments/{case}"), CaseGroup::Malformed, CALL, params).unanswered()
    };
    cases.extend([("text", json!("x")), ("array", json!([1]))].map(odd));
    let control = material.cheap_method();
    cases.push(Case::request("malformed/control-arguments", CaseGroup::Malformed, control, json!({})));
    for (name, arguments) in &material.callable {
        let Some(tool) = material.tools.iter().find(|tool| tool["name"] == **name) else { continue };
        let call = |case: &str, params: Value| Case::request(format!("{case}/{name}"), CaseGroup::Calls, CALL, params);
        let schema = &tool["inputSchema"];
        if let Some(wrong) = invalid_arguments(schema) {
            cases.push(call("calls/invalid-arguments", Material::call_params(name, &wrong)));
        }
        if accepts(schema, &json!({})) == Some(true) {
            cases.push(call("calls/no-arguments", json!({ "name": name })));
        }
        if tool["annotations"]["idempotentHint"] == true {
            cases.push(call("calls/again", Material::call_params(name, arguments)));
        }
    }
    let Some((name, arguments)) = material.callable.first() else { return cases };
    let swapped: String = name.chars().map(swap_case).collect();
    if material.tools.iter().all(|tool| tool["name"] != *swapped) {
        let params = Material::call_params(&swapped, arguments);
        cases.push(Case::request("unknown-names/tool-case", CaseGroup::Calls, CALL, params));
    }
    if material.version == Some(Version::V2025_11_25) && !material.declares("tasks/requests/tools/call") {
        let mut params = Material::call_params(name, arguments);
        params["task"] = json!({});
        cases.push(Case::request("calls/task-param", CaseGroup::Calls, CALL, params));
    }
    cases
}

fn swap_case(letter: char) -> char {
    if letter.is_ascii_lowercase() { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}

/// Arguments that the schema does not allow: none at all, or one of a wrong type.
fn invalid_arguments(schema: &Value) -> Option<Value> {
    let properties = schema["properties"].as_object()?;
    let wrong = properties.iter().map(|(name, property)| {
        let value = if property["type"] == "object" { json!("rehearse") } else { json!({ "rehearse": 1 }) };
        json!({ name: value })
    });
    let validator = compile(schema).ok()?;
    [json!({})].into_iter().chain(wrong).find(|arguments| !validator.is_valid(arguments))
}

fn name<'e>(call: &Call<'e>) -> Option<&'e str> {
    call.text("/params/name")
}

fn is_tool_error(call: &Call<'_>) -> bool {
    call.result().is_some_and(|result| result["isError"] == true)
}

fn is_refused(call: &Call<'_>) -> bool {
    call.has_error() || is_tool_error(call)
}

fn results<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Named<'e, (Call<'e>, &'e Value)>> {
    evidence.results_of(CALL).by(name)
}

/// The results that are neither questions nor tasks.
fn complete_results<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.results_of(CALL).filter(|(_, result)| {
        !matches!(result["resultType"].as_str(), Some("input_required" | "task")) && result.get("task").is_none()
    })
}

fn names(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str) -> bool) {
    let found = |it: &Value| format!("the name {}", shown(&it["name"]));
    each_item(e, j, LIST, |it| it["name"].as_str().is_none_or(&holds), found);
}

fn order(e: &Evidence<'_>, j: &mut Judgement) {
    let mut first: Option<Vec<&str>> = None;
    for reading in readings(e, LIST) {
        let tools = reading.pages.iter().flat_map(|(_, result)| elements(&result["tools"]));
        let names: Vec<_> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        let Some(first) = &first else {
            first = Some(names);
            continue;
        };
        let (one, other): (HashSet<_>, HashSet<_>) = (first.iter().collect(), names.iter().collect());
        // Other tools are another matter than another order.
        if let (true, Some((call, _))) = (one == other && first.len() > 1, reading.pages.first()) {
            j.check_at(*first == names, None, call.places(), || "another order");
        }
    }
}

/// The output schema of each tool.
fn output_schemas<'e>(evidence: &'e Evidence<'_>) -> HashMap<&'e str, &'e Value> {
    items(evidence, LIST).filter_map(|(tool, name, _)| Some((name, tool.get("outputSchema")?))).collect()
}

fn results_with_schema<'e>(evidence: &'e Evidence<'_>) -> Vec<(Call<'e>, &'e Value, &'e Value)> {
    let schemas = output_schemas(evidence);
    complete_results(evidence)
        .filter_map(|(call, result)| {
            let schema = schemas.get(call.text("/params/name")?)?;
            Some((call, result, *schema))
        })
        .collect()
}

fn has_text(e: &Evidence<'_>, j: &mut Judgement) {
    for (call, result) in e.results_of(CALL) {
        let Some(content) = result.get("structuredContent") else { continue };
        let texts = elements(&result["content"]).filter_map(|block| block["text"].as_str());
        let is_there = texts.into_iter().any(|text| serde_json::from_str::<Value>(text).is_ok_and(|it| it == *content));
        j.check_at(is_there, name(&call), call.places(), || "no text block with the same JSON");
    }
}
