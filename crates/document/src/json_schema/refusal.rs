//! Which keywords of a schema refuse a value.

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind as Kind};
use serde_json::Value as Json;

/// A keyword that refuses a value, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The JSON pointer to the keyword. It leads through no reference, but begins at its target.
    pub keyword: String,
    /// The properties that are missing or that must not be there.
    pub properties: Vec<String>,
    /// What is refused.
    pub value: Json,
}

/// Every refusal of a value, also those by single branches of `anyOf` and `oneOf`; empty if it is valid.
pub fn refusals(validator: &Validator, value: &Json) -> Vec<Refusal> {
    let mut found = Vec::new();
    validator.iter_errors(value).for_each(|error| collect(&error, &mut found));
    found
}

fn collect(error: &ValidationError<'_>, found: &mut Vec<Refusal>) {
    let properties = match error.kind() {
        Kind::Required { property } => property.as_str().map(str::to_owned).into_iter().collect(),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => unexpected.clone(),
        _ => Vec::new(),
    };
    let keyword = error.schema_path().as_str().to_owned();
    found.push(Refusal { keyword, properties, value: error.instance().clone().into_owned() });
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind() {
        context.iter().flatten().for_each(|error| collect(error, found));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_names_its_keyword_behind_references_and_in_branches() {
        let schema = json!({
            "properties": { "a": { "$ref": "#/$defs/n" }, "b": { "anyOf": [{ "type": "null" }, { "required": ["c"] }] } },
            "additionalProperties": false,
            "$defs": { "n": { "enum": [1] } },
        });
        let validator = crate::json_schema::compile(&schema).expect("a schema");
        let mut found = refusals(&validator, &json!({ "a": 2, "b": {}, "x": 3 }));
        found.sort_by(|a, b| a.keyword.cmp(&b.keyword));
        let found: Vec<_> = found.iter().map(|it| (&*it.keyword, it.properties.join(","), &it.value)).collect();
        let (all, nothing) = (&json!({ "a": 2, "b": {}, "x": 3 }), &json!({}));
        assert_eq!(
            found,
            [
                ("/$defs/n/enum", String::new(), &json!(2)),
                ("/additionalProperties", "x".to_owned(), all),
                ("/properties/b/anyOf", String::new(), nothing),
                ("/properties/b/anyOf/0/type", String::new(), nothing),
                ("/properties/b/anyOf/1/required", "c".to_owned(), nothing),
            ]
        );
    }
}
