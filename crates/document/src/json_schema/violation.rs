//! The violations of a JSON Schema, one for every path at which a value is wrong.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use serde_json::Value as Json;

use super::{Mismatch, Type, shorten};
use crate::nearest;

/// Adds what an error says. Of alternatives (`anyOf`, `oneOf`) only the intended one is reported, if there is one.
pub(super) fn collect(error: &ValidationError<'_>, found: &mut Vec<Mismatch>) {
    found.extend(meant(error).into_iter().map(|error| Mismatch {
        pointer: error.instance_path().to_string(),
        message: message(error, alternatives(error)),
    }));
}

/// The errors of the alternative (`anyOf`, `oneOf`) that was intended, if there is one; else the error.
pub fn meant<'e>(error: &'e ValidationError<'e>) -> Vec<&'e ValidationError<'e>> {
    let alternatives = alternatives(error).iter();
    let mut meant = alternatives.filter(|errors| !errors.iter().any(|inner| excludes(inner, error)));
    match (meant.next(), meant.next()) {
        (Some(errors), None) => errors.iter().flat_map(self::meant).collect(),
        _ => vec![error],
    }
}

fn alternatives<'e>(error: &'e ValidationError<'_>) -> &'e [Vec<ValidationError<'static>>] {
    match error.kind() {
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => context,
        _ => &[],
    }
}

/// Whether an alternative with this error is for values of another kind: of another type, or with another word at the
/// member that distinguishes the alternatives.
fn excludes(inner: &ValidationError<'_>, outer: &ValidationError<'_>) -> bool {
    let (here, there) = (outer.instance_path().as_str(), inner.instance_path().as_str());
    let is_member = there.rsplit_once('/').is_some_and(|(parent, _)| parent == here);
    match inner.kind() {
        Kind::Type { .. } | Kind::Enum { .. } | Kind::FalseSchema => here == there,
        Kind::Constant { .. } => here == there || is_member,
        _ => false,
    }
}

/// The names in the `type` of a schema that are not types, where the meta-schema only finds that they fit none of its
/// alternatives; empty if an error is about anything else.
pub(super) fn unknown_types(error: &ValidationError<'_>) -> Vec<Mismatch> {
    let names = Type::ALL.map(Type::as_str);
    let lists_types = |error: &ValidationError<'_>| match error.kind() {
        Kind::Enum { options } => options.as_array().is_some_and(|options| {
            options.len() == names.len() && names.iter().all(|name| options.contains(&Json::from(*name)))
        }),
        _ => false,
    };
    let unknown = |error: &ValidationError<'_>| {
        let hint = match error.instance().as_str().and_then(|name| nearest(name, &names)) {
            Some(near) => format!("; did you mean {near:?}?"),
            None => format!(": types are {} and {}", names[..6].join(", "), names[6]),
        };
        let message = format!("there is no type {}{hint}", shorten(error.instance()));
        Mismatch { pointer: error.instance_path().to_string(), message }
    };
    let inner = match error.kind() {
        Kind::AnyOf { context } => context.iter().flatten().collect(),
        _ => vec![error],
    };
    inner.into_iter().filter(|it| lists_types(it) && !it.instance().is_array()).map(unknown).collect()
}

fn message(error: &ValidationError<'_>, alternatives: &[Vec<ValidationError<'_>>]) -> String {
    let message = error.masked_with(shorten(error.instance())).to_string();
    let alternatives = alternatives.iter().filter(|errors| !errors.is_empty()).map(|errors| {
        let mut found = Vec::new();
        errors.iter().for_each(|error| collect(error, &mut found));
        found.iter().map(Mismatch::to_string).collect::<Vec<_>>().join(", ")
    });
    let alternatives: Vec<_> = alternatives.collect();
    if alternatives.is_empty() { message } else { format!("{message} ({})", alternatives.join("; or ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violations(schema: &Json, value: &Json) -> Vec<String> {
        let validator = jsonschema::validator_for(schema).expect("a schema");
        let mut found = Vec::new();
        validator.iter_errors(value).for_each(|error| collect(&error, &mut found));
        found.iter().map(Mismatch::to_string).collect()
    }

    #[test]
    fn the_alternative_that_was_meant_is_reported_with_its_paths() {
        let optional = json!({ "properties": { "a": { "anyOf": [
            { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" }, "m": { "minimum": 1 } } },
            { "type": "null" },
        ] } } });
        assert_eq!(violations(&optional, &json!({ "a": null })), [""; 0]);
        assert_eq!(
            violations(&optional, &json!({ "a": { "n": "x", "m": 0 } })),
            ["/a/n: \"x\" is not of type \"integer\"", "/a/m: 0 is less than the minimum of 1"]
        );
        let tagged = json!({ "items": { "oneOf": [
            { "properties": { "kind": { "const": "a" }, "x": { "type": "integer" } } },
            { "properties": { "kind": { "const": "b" } }, "required": ["y"] },
        ] } });
        assert_eq!(
            violations(&tagged, &json!([{ "kind": "a", "x": 1.5 }, { "kind": "b" }])),
            ["/0/x: 1.5 is not of type \"integer\"", "/1: \"y\" is a required property"]
        );
    }

    #[test]
    fn alternatives_none_or_several_of_which_may_be_meant_are_all_reported() {
        let schema = json!({ "properties": { "a": { "anyOf": [
            { "type": "integer" },
            { "type": "array", "items": { "type": "integer" } },
        ] } } });
        let base = "is not valid under any of the schemas listed in the 'anyOf' keyword";
        assert_eq!(
            violations(&schema, &json!({ "a": "x" })),
            [format!("/a: \"x\" {base} (/a: \"x\" is not of type \"integer\"; or /a: \"x\" is not of type \"array\")")]
        );
        let schema = json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b", "c"] }] });
        let alternatives =
            "\"a\" is a required property; or \"b\" is a required property, \"c\" is a required property";
        assert_eq!(violations(&schema, &json!({})), [format!("{{}} {base} ({alternatives})")]);
    }

    #[test]
    fn an_unknown_type_is_reported_with_the_likely_one() {
        let mistakes = |schema: &Json| {
            let mut found = Vec::new();
            let meta = jsonschema::meta::validator_for(schema).expect("a known version");
            meta.iter_errors(schema).for_each(|error| found.extend(unknown_types(&error)));
            found.iter().map(Mismatch::to_string).collect::<Vec<_>>()
        };
        for version in ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"] {
            let messages = mistakes(&json!({
                "$schema": version,
                "type": "objekt",
                "properties": { "type": { "type": ["string", "text"] }, "n": { "type": 5 } },
            }));
            let mut messages: Vec<_> = messages.iter().map(String::as_str).collect();
            messages.sort_unstable();
            let all = "types are array, boolean, integer, null, number, object and string";
            assert_eq!(
                messages,
                [
                    &*format!("/properties/n/type: there is no type 5: {all}"),
                    &*format!("/properties/type/type/1: there is no type \"text\": {all}"),
                    "/type: there is no type \"objekt\"; did you mean \"object\"?",
                ],
                "{version}"
            );
        }
        assert_eq!(mistakes(&json!({ "type": [], "minLength": "x", "properties": 5 })), [""; 0]);
    }

    #[test]
    fn a_long_value_is_reported_by_its_beginning() {
        let schema = json!({ "type": "integer" });
        let [message] = &violations(&schema, &json!(["x".repeat(100_000)]))[..] else { panic!("one message") };
        assert!(message.len() < 200 && message.starts_with("[\"xxx"), "{message}");
    }
}
