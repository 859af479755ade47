//! Forms that the user has filled in.

use rehearse_document::json_schema::compile;
use rehearse_protocol::Version;
use serde_json::Value;

use super::{super::super::common::shown, Asked, ELICIT, check, results};
use crate::areas::query::elements;
use crate::{Evidence, Judgement};

/// A member that is neither a string, a number, a boolean nor, in newer versions, an array of strings.
pub(super) fn flat(asked: &Asked<'_>, result: &Value, version: Version) -> Option<String> {
    let content = result.get("content")?;
    let Some(members) = content.as_object() else {
        let is_absent = content.is_null() && result["action"] != "accept";
        return (!is_absent).then(|| format!("`content: {}`", shown(content)));
    };
    // A server of an older version must not ask for an array; who is asked may well give one.
    let is_asked = |name: &str| asked.params["requestedSchema"]["properties"][name]["type"] == "array";
    let are_strings = |it: &Value| it.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    let is_flat = |name: &str, it: &Value| match it {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
        _ => (version >= Version::V2025_11_25 || is_asked(name)) && are_strings(it),
    };
    let (name, value) = members.iter().find(|(name, value)| !is_flat(name, value))?;
    Some(format!("`{name}: {}`", shown(value)))
}

pub(super) fn content_matches(e: &Evidence<'_>, j: &mut Judgement) {
    for (asked, result) in results(e, ELICIT) {
        let schema = &asked.params["requestedSchema"];
        if result["action"] != "accept" || !result["content"].is_object() || asked.params["mode"] == "url" {
            continue;
        }
        if let Ok(validator) = compile(schema) {
            check(j, &asked, validator.validate(&result["content"]).err().map(|error| error.to_string()));
        }
    }
    j.untested("the user accepted no form");
}

pub(super) fn required_present(e: &Evidence<'_>, j: &mut Judgement) {
    for (asked, result) in results(e, ELICIT) {
        let required = elements(&asked.params["requestedSchema"]["required"]);
        let content = &result["content"];
        if result["action"] == "accept" && (content.is_object() || asked.params["mode"] == "form") {
            let missing = required.filter_map(Value::as_str).find(|name| content.get(*name).is_none());
            check(j, &asked, missing.map(|name| format!("no `{name}`")));
        }
    }
    j.untested("the user accepted no form");
}

/// The title of a choice in place of its value.
pub(super) fn prefers_title(schema: &Value, value: &Value) -> Option<String> {
    let choices = ["oneOf", "anyOf"].iter().flat_map(|key| {
        let own = elements(&schema[*key]);
        own.chain(elements(&schema["items"][*key]))
    });
    let choices: Vec<_> = choices.collect();
    let names = elements(&schema["enumNames"]);
    let values: Vec<_> = elements(&schema["enum"]).chain(choices.iter().map(|it| &it["const"])).collect();
    let titles: Vec<_> = choices.iter().map(|it| &it["title"]).chain(names).collect();
    let chosen = value.as_array().map_or_else(|| vec![value], |all| all.iter().collect());
    let wrong = chosen.into_iter().find(|it| titles.contains(it) && !values.contains(it))?;
    Some(shown(wrong))
}

/// Checks that a client which fills in some of the defaults of a form fills in all. It does not have to know them.
pub(super) fn defaults_applied(e: &Evidence<'_>, j: &mut Judgement) {
    for (asked, result) in results(e, ELICIT).iter().filter(|(_, result)| result["action"] == "accept") {
        let properties = asked.params["requestedSchema"]["properties"].as_object().into_iter().flatten();
        let defaults: Vec<_> = properties.filter_map(|(name, schema)| Some((name, schema.get("default")?))).collect();
        let content = &result["content"];
        // Who fills in a choice may have taken the first one.
        let is_telling = |value: &Value| value.is_number() || value.as_str().is_some_and(|it| it.len() > 1);
        let is_known = asked.declared["elicitation"]["form"]["applyDefaults"] == true
            || defaults.iter().any(|(name, default)| {
                let is_choice = asked.params["requestedSchema"]["properties"][*name].get("enum").is_some();
                !is_choice && is_telling(default) && content.get(*name) == Some(default)
            });
        let missing = defaults.iter().find(|(name, _)| content.get(*name).is_none());
        if is_known && content.is_object() {
            check(j, asked, missing.map(|(name, default)| format!("no `{name}`, whose default is {}", shown(default))));
        }
    }
    j.untested("no form with defaults was accepted by a client that knows them");
}
