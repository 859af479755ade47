//! JSON Schemas: [compiled](compile) ones with the violations that they find in a value, a [`View`] of what they
//! allow, an [`example`] of it, [`instances`] for tests, and the [`refusal`]s of a value.

pub mod example;
mod formats;
pub mod instances;
mod pattern;
pub mod refusal;
mod subschema;
mod view;
mod violation;

use std::{
    collections::HashSet,
    fmt,
    sync::{LazyLock, OnceLock},
};

pub use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value as Json;
pub use subschema::{Subschema, subschemas};
pub use view::{Type, View};
pub use violation::meant;

use crate::{Entry, Node, Problem, Problems, Value, text::shortened};

/// A compiled JSON Schema, 2020-12 unless it says otherwise (2025-11-25, Basic: JSON Schema Usage).
pub struct Schema {
    json: Json,
    /// A plain schema is compiled on its first use.
    validator: OnceLock<Validator>,
}

/// Why a value does not match, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer into the value.
    pub pointer: String,
    /// The message.
    pub message: String,
}

impl Schema {
    /// Compiles the schema at `node`. Remote references are not fetched.
    ///
    /// # Errors
    /// Everything that makes the schema invalid, or that it refers to another document; each with its path.
    pub fn read(node: &Node) -> Result<Schema, Problems> {
        node.entries()?;
        let json = node.to_json();
        if is_plain(&json) {
            return Ok(Schema { json, validator: OnceLock::new() });
        }
        match compile(&json) {
            Ok(validator) => Ok(Schema { json, validator: validator.into() }),
            Err(error) => {
                let all = jsonschema::meta::validator_for(&json).ok();
                let mut found = Vec::new();
                all.iter().flat_map(|all| all.iter_errors(&json)).for_each(|it| match violation::unknown_types(&it) {
                    types if types.is_empty() => violation::collect(&it, &mut found),
                    types => found.extend(types),
                });
                if found.is_empty() {
                    violation::collect(&error, &mut found);
                }
                // Every vocabulary of the meta-schema reports the same violation.
                let mut seen = HashSet::new();
                found.retain(|it| seen.insert((it.pointer.clone(), it.message.clone())));
                let mut problems: Vec<_> = found.into_iter().map(|it| not_a_schema(node, it)).collect();
                problems.sort_by_key(|problem| problem.span.start);
                Err(Problems(problems))
            }
        }
    }

    /// Every violation, as `pointer: message`; empty if the value is valid.
    pub fn violations(&self, value: &Json) -> Vec<Mismatch> {
        // A plain schema means the same in draft 7, whose meta-schema is ready four times sooner.
        let validator =
            self.validator.get_or_init(|| jsonschema::draft7::new(&self.json).expect("a plain schema is valid"));
        if validator.is_valid(value) {
            return Vec::new();
        }
        let mut found = Vec::new();
        validator.iter_errors(value).for_each(|error| violation::collect(&error, &mut found));
        found
    }
}

/// A mistake in a schema, at its position. The error of a broken reference has no position.
fn not_a_schema(schema: &Node, Mismatch { pointer, message }: Mismatch) -> Problem {
    let reference = |pointer: &str| match pointer.is_empty() {
        true => referring(schema, &message, String::new()),
        false => None,
    };
    let (at, pointer) = match reference(&pointer) {
        Some((node, pointer)) => (node, pointer),
        None => (schema.pointer(&pointer).unwrap_or(schema), pointer),
    };
    let path = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
    at.problem(format!("not a valid JSON Schema{path}: {message}"))
}

/// The first `$ref`, `$dynamicRef` or `$schema` whose value is in the error message, and its JSON pointer.
fn referring<'n>(node: &'n Node, message: &str, pointer: String) -> Option<(&'n Node, String)> {
    match &node.value {
        Value::Sequence(items) => {
            items.iter().enumerate().find_map(|(index, item)| referring(item, message, format!("{pointer}/{index}")))
        }
        Value::Mapping(entries) => entries.iter().find_map(|Entry { key, node, .. }| {
            let mut pointer = pointer.clone();
            at_member(&mut pointer, key, |pointer| match &node.value {
                Value::String(text) if matches!(key.as_str(), "$ref" | "$dynamicRef" | "$schema") => {
                    let target = text.trim_start_matches('#');
                    (!target.is_empty() && message.contains(target)).then(|| (node, pointer.clone()))
                }
                _ => referring(node, message, pointer.clone()),
            })
        }),
        _ => None,
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => f.write_str(&self.message),
            pointer => write!(f, "{pointer}: {}", self.message),
        }
    }
}

/// Whether a schema has only these keywords, and each is well-formed. Such a schema is valid. To find that out with the
/// meta-schema takes most of the time in which a mock starts.
fn is_plain(schema: &Json) -> bool {
    let Some(keywords) = schema.as_object() else { return schema.is_boolean() };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value.as_str().is_some_and(|name| Type::parse(name).is_some()),
        "title" | "description" => value.is_string(),
        "const" | "default" => true,
        "required" => value.as_array().is_some_and(|names| {
            let mut unique = HashSet::new();
            names.iter().all(|name| name.as_str().is_some_and(|name| unique.insert(name)))
        }),
        "properties" => value.as_object().is_some_and(|properties| properties.values().all(is_plain)),
        "items" | "additionalProperties" => is_plain(value),
        _ => false,
    })
}

/// Compiles a schema, for callers with their own messages. Schemas come from peers: remote references are not fetched,
/// and no pattern takes long.
///
/// # Errors
/// The first thing that makes it invalid.
pub fn compile(schema: &Json) -> Result<Validator, jsonschema::ValidationError<'static>> {
    options().build(schema)
}

/// As [`compile`]; values must have the `format` of the schema, too.
///
/// # Errors
/// The first thing that makes it invalid.
pub fn compile_with_formats(schema: &Json) -> Result<Validator, jsonschema::ValidationError<'static>> {
    options().should_validate_formats(true).build(schema)
}

fn options<'i>() -> jsonschema::ValidationOptions<'i> {
    let patterns = jsonschema::PatternOptions::fancy_regex().backtrack_limit(100_000);
    jsonschema::options().with_pattern_options(patterns)
}

/// Whether a schema accepts a value; `None` if it is not valid.
pub fn accepts(schema: &Json, value: &Json) -> Option<bool> {
    compile(schema).ok().map(|validator| validator.is_valid(value))
}

/// Whether a schema is valid in its dialect, as far as that is known.
pub fn is_valid(schema: &Json) -> bool {
    jsonschema::meta::validator_for(schema).map_or(true, |meta| meta.is_valid(schema))
}

/// Where a schema is not valid JSON Schema 2020-12, as a JSON pointer.
pub fn first_mistake(schema: &Json) -> Option<String> {
    let error = jsonschema::draft202012::meta::validate(schema).err()?;
    Some(error.instance_path().to_string())
}

/// Whether a text is a regular expression: of ECMA-262, as JSON Schema recommends, or as other languages write them.
pub fn is_pattern(text: &str) -> bool {
    static ECMA: LazyLock<Option<Validator>> =
        LazyLock::new(|| compile_with_formats(&serde_json::json!({ "format": "regex" })).ok());
    // The anchors of Python.
    let text = text.replace(r"\A", "^").replace(r"\Z", "$");
    let is_ecma = ECMA.as_ref().is_none_or(|ecma| ecma.is_valid(&text.as_str().into()));
    is_ecma || compile(&serde_json::json!({ "pattern": text })).is_ok() || regex::Regex::new(&text).is_ok()
}

/// Visits a member or an item, whose JSON pointer is `pointer` meanwhile.
pub(crate) fn at_member<T>(pointer: &mut String, key: &str, visit: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    let visited = visit(pointer);
    pointer.truncate(length);
    visited
}

/// A value for a message: JSON, shortened.
pub(crate) fn shorten(value: &Json) -> String {
    shortened(&value.to_string(), 120)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_pattern_is_one_in_some_language() {
        for good in
            ["^a+$", "(?=x)y", r"^(?P<a>\d+)\Z", r"^(?P<a>\d+)(?=x)$", "(?i)x", r"\p{L}", r"[\w.-]+@\w+", "", r"^\/a\/"]
        {
            assert!(is_pattern(good), "{good}");
        }
        for bad in ["[a-", "(", "*a", "a{2,1}", "a)", "\\"] {
            assert!(!is_pattern(bad), "{bad}");
        }
    }

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn schema() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(json!(true)),
            Just(json!(7)),
            Just(json!("object")),
            Just(json!("text")),
            Just(json!([])),
            Just(json!(["a", "b"])),
            Just(json!(["a", "a"])),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let keyword = prop_oneof![
                "type|title|description|const|default|required|properties|items|additionalProperties",
                Just("minLength".to_owned()),
            ];
            prop::collection::vec((keyword, inner), 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect()))
        })
    }

    proptest! {
        #[test]
        fn a_plain_schema_is_valid(schema in schema()) {
            prop_assert!(!is_plain(&schema) || compile(&schema).is_ok(), "{schema}");
            prop_assert!(!is_plain(&schema) || jsonschema::draft7::new(&schema).is_ok(), "{schema}");
        }
    }

    #[test]
    fn an_ordinary_tool_has_a_plain_schema() {
        let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
        assert!(is_plain(&schema));
        assert!(!is_plain(&json!({ "type": "object", "required": ["a", "a"] })));
        assert!(!is_plain(&json!({ "properties": { "a": { "type": "text" } } })));
    }
}
