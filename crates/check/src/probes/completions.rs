//! Completions, and what is done with their values.

use rehearse_conformance::{Case, CaseGroup, Material};
use rehearse_document::uri_template::UriTemplate;
use serde_json::{Map, Value, json};

use crate::connection::ProbeConnection;

const COMPLETE: &str = "completion/complete";
const READ: &str = "resources/read";
/// How many templates are expanded.
const EXPANDED: usize = 3;
/// How many arguments of a prompt or variables of a template are completed.
const COMPLETED: usize = 3;
/// How many prompts are got.
const GOT: usize = 3;

/// Gets listed prompts with what they require, and those that may be varied also with all arguments; with completed
/// values as far as there are any.
pub(super) async fn get_prompts(connection: &mut ProbeConnection, material: &Material) {
    for (number, prompt) in material.prompts.iter().filter(|it| it["name"].is_string()).take(GOT).enumerate() {
        let names = prompt["arguments"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str());
        let names: Vec<_> = names.collect();
        let all = prompt["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut arguments: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!("rehearse"))).collect();
        let reference = json!({ "type": "ref/prompt", "name": prompt["name"] });
        for (name, value) in complete_all(connection, material, &reference, &names).await {
            arguments.insert(name, value.into());
        }
        if let (true, [first, second, ..]) = (material.declares("completions"), names.as_slice()) {
            let context = json!({ "arguments": { *first: arguments[*first] } });
            let params = json!({ "ref": reference, "argument": { "name": second, "value": "" }, "context": context });
            connection
                .send(&Case::request(format!("completion/context/{number}"), CaseGroup::Main, COMPLETE, params))
                .await;
        }
        let mut plain = arguments.clone();
        plain.retain(|name, _| all.iter().any(|it| it["name"] == name.as_str() && it["required"] == true));
        let get = |arguments: &Map<_, _>| json!({ "name": prompt["name"], "arguments": arguments });
        let works = connection.request("prompts/get", get(&plain)).await.result().is_some();
        // Optional arguments may exclude one another.
        let is_varied = material.varied_prompts.contains(prompt);
        if works && is_varied && plain.len() < arguments.len() {
            let case = format!("prompts/optional/{number}");
            connection.send(&Case::request(case, CaseGroup::Main, "prompts/get", get(&arguments))).await;
        }
    }
}

/// Reads expansions of listed templates: one with completed values, and one that cannot exist.
pub(super) async fn expand_templates(connection: &mut ProbeConnection, material: &Material) {
    let templates = material.templates.iter().filter_map(|it| UriTemplate::parse(it["uriTemplate"].as_str()?).ok());
    for (number, template) in templates.filter(|it| !it.variables().is_empty()).take(EXPANDED).enumerate() {
        let read = |case: &str, uri: String| {
            Case::request(format!("{case}/{number}"), CaseGroup::Main, READ, json!({ "uri": uri }))
        };
        let reference = json!({ "type": "ref/resource", "uri": template.as_str() });
        let values = complete_all(connection, material, &reference, &template.variables()).await;
        let value = |name: &str| values.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone());
        if let Some(uri) = expand(&template, value) {
            connection.send(&read("templates/expanded", uri)).await;
        }
        let nonsense = expand(&template, |_| Some(format!("rehearse-{}", material.suffix)));
        if let Some(uri) = nonsense {
            connection.send(&read("templates/unknown", uri)).await;
        }
    }
}

/// The first value that the server offers for each name. The first completion with values is refined once.
async fn complete_all(
    connection: &mut ProbeConnection,
    material: &Material,
    reference: &Value,
    names: &[&str],
) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    if !material.declares("completions") {
        return values;
    }
    for name in names.iter().take(COMPLETED) {
        let params = |value: &str| json!({ "ref": reference, "argument": { "name": name, "value": value } });
        let answer = connection.request(COMPLETE, params("")).await;
        let offered = answer.result().and_then(|result| result["completion"]["values"].as_array());
        let offered = offered.into_iter().flatten().filter_map(Value::as_str);
        let Some(value) = offered.into_iter().find(|value| !value.is_empty()) else { continue };
        if values.is_empty() {
            let letter: String = value.chars().take(1).collect();
            connection.send(&Case::request("completion/refined", CaseGroup::Main, COMPLETE, params(&letter))).await;
        }
        values.push(((*name).to_owned(), value.to_owned()));
    }
    values
}

/// Expands a template if there is a value for every variable.
fn expand(template: &UriTemplate, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let values = template.variables().into_iter().map(|name| Some((name.to_owned(), value(name)?.into())));
    Some(template.expand(&values.collect::<Option<_>>()?))
}
