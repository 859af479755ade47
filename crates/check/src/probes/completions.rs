//! Completions, and what is done with their values.

use rehearse_conformance::{Case, Lane as CaseLane, Material};
use serde_json::{Map, Value, json};

use crate::lane::Lane;

const COMPLETE: &str = "completion/complete";
const READ: &str = "resources/read";
/// How many templates are expanded.
const EXPANDED: usize = 3;
/// How many arguments of a prompt or variables of a template are completed.
const COMPLETED: usize = 3;
/// How many prompts are got.
const GOT: usize = 3;

/// Gets listed prompts, with completed values as far as there are any.
pub(super) async fn get_prompts(lane: &mut Lane, material: &Material) {
    for (number, prompt) in material.prompts.iter().filter(|it| it["name"].is_string()).take(GOT).enumerate() {
        let names = prompt["arguments"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str());
        let names: Vec<_> = names.collect();
        let mut arguments: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), json!("rehearse"))).collect();
        let reference = json!({ "type": "ref/prompt", "name": prompt["name"] });
        for (name, value) in complete_all(lane, material, &reference, &names).await {
            arguments.insert(name, value.into());
        }
        if let (true, [first, second, ..]) = (material.declares("completions"), names.as_slice()) {
            let context = json!({ "arguments": { *first: arguments[*first] } });
            let params = json!({ "ref": reference, "argument": { "name": second, "value": "" }, "context": context });
            lane.send(&Case::request(format!("completion/context/{number}"), CaseLane::Main, COMPLETE, params)).await;
        }
        lane.request("prompts/get", json!({ "name": prompt["name"], "arguments": arguments })).await;
    }
}

/// Reads expansions of listed templates: one that cannot exist, and one with completed values.
pub(super) async fn expand_templates(lane: &mut Lane, material: &Material) {
    let templates = material.templates.iter().filter_map(|it| it["uriTemplate"].as_str());
    for (number, template) in templates.filter(|it| !variables(it).is_empty()).take(EXPANDED).enumerate() {
        let names = variables(template);
        let read = |case: &str, uri: String| {
            Case::request(format!("{case}/{number}"), CaseLane::Main, READ, json!({ "uri": uri }))
        };
        let nonsense = expand(template, |_| Some(format!("rehearse-{}", material.suffix)));
        if let Some(uri) = nonsense {
            lane.send(&read("templates/unknown", uri)).await;
        }
        let reference = json!({ "type": "ref/resource", "uri": template });
        let values = complete_all(lane, material, &reference, &names).await;
        let value = |name: &str| values.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone());
        if let Some(uri) = expand(template, value) {
            lane.send(&read("templates/expanded", uri)).await;
        }
    }
}

/// The first value that the server offers for each name. The first completion with values is refined once.
async fn complete_all(
    lane: &mut Lane,
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
        let answer = lane.request(COMPLETE, params("")).await;
        let offered = answer.result().and_then(|result| result["completion"]["values"].as_array());
        let offered = offered.into_iter().flatten().filter_map(Value::as_str);
        let Some(value) = offered.into_iter().find(|value| !value.is_empty()) else { continue };
        if values.is_empty() {
            let letter: String = value.chars().take(1).collect();
            lane.send(&Case::request("completion/refined", CaseLane::Main, COMPLETE, params(&letter))).await;
        }
        values.push(((*name).to_owned(), value.to_owned()));
    }
    values
}

/// The expressions of a URI template, without the braces.
fn expressions(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// The operator of an expression, and the names in it.
fn parts(expression: &str) -> (Option<char>, impl Iterator<Item = &str>) {
    let operator = expression.chars().next().filter(|it| "+#./;?&".contains(*it));
    let names = expression.get(operator.map_or(0, char::len_utf8)..).unwrap_or_default().split(',');
    (operator, names.map(|name| name.split(':').next().unwrap_or_default().trim_end_matches('*')))
}

fn variables(template: &str) -> Vec<&str> {
    expressions(template).flat_map(|expression| parts(expression).1).collect()
}

/// Expands a URI template (RFC 6570) if there is a value for every variable.
fn expand(template: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut uri = template.to_owned();
    for expression in expressions(template) {
        let (operator, names) = parts(expression);
        let (first, between) = match operator {
            None | Some('+') => ("", ","),
            Some('#') => ("#", ","),
            Some('?') => ("?", "&"),
            Some('&') => ("&", "&"),
            Some(';') => (";", ";"),
            Some('/') => ("/", "/"),
            Some(_) => (".", "."),
        };
        let is_named = matches!(operator, Some('?' | '&' | ';'));
        let is_open = matches!(operator, Some('+' | '#'));
        let values = names.map(|name| {
            let value = value(name)?;
            let value = if is_open { value } else { encoded(&value) };
            Some(if is_named { format!("{name}={value}") } else { value })
        });
        let values = values.collect::<Option<Vec<_>>>()?.join(between);
        uri = uri.replacen(&format!("{{{expression}}}"), &format!("{first}{values}"), 1);
    }
    Some(uri)
}

fn encoded(value: &str) -> String {
    let byte = |it: u8| match it.is_ascii_alphanumeric() || b"-._~".contains(&it) {
        true => char::from(it).to_string(),
        false => format!("%{it:02X}"),
    };
    value.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_expanded_by_the_operator_of_each_expression() {
        let value = |name: &str| (name != "none").then(|| format!("{name} 1"));
        let cases = [
            ("a://{x}/b", Some("a://x%201/b")),
            ("a://{+x}{?y,z*}", Some("a://x 1?y=y%201&z=z%201")),
            ("a://b{/x:3}", Some("a://b/x%201")),
            ("a://{none}", None),
        ];
        for (template, expected) in cases {
            assert_eq!(expand(template, value).as_deref(), expected, "{template}");
        }
    }
}
