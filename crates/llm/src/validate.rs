//! Validates the arguments of a call, parameter by parameter.
//!
//! The codes and most messages are those of MCPilot. Keywords without a code (`not`, `oneOf`, `format`…) are reported as
//! [`Code::CustomValidationFailed`].

use std::{fmt, sync::OnceLock};

use serde_json::{Map, Value};

use rehearse_document::{
    json_schema::{self, TypeKind, ValidationError, ValidationErrorKind as Kind, View, compile, meant},
    nearest,
};

/// An error in an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path, such as `filter.names[0]`.
    pub parameter: String,
    pub code: Code,
    pub message: String,
    /// A correction of a misspelled name.
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    MissingRequired,
    InvalidType,
    /// A number, a length or a count.
    OutOfRange,
    PatternMismatch,
    UnknownParameter,
    EnumMismatch,
    InvalidArrayItems,
    CustomValidationFailed,
}

impl Code {
    pub const ALL: [Code; 8] = [
        Code::MissingRequired,
        Code::InvalidType,
        Code::OutOfRange,
        Code::PatternMismatch,
        Code::UnknownParameter,
        Code::EnumMismatch,
        Code::InvalidArrayItems,
        Code::CustomValidationFailed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Code::MissingRequired => "MISSING_REQUIRED",
            Code::InvalidType => "INVALID_TYPE",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::PatternMismatch => "PATTERN_MISMATCH",
            Code::UnknownParameter => "UNKNOWN_PARAMETER",
            Code::EnumMismatch => "ENUM_MISMATCH",
            Code::InvalidArrayItems => "INVALID_ARRAY_ITEMS",
            Code::CustomValidationFailed => "CUSTOM_VALIDATION_FAILED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.parameter, self.code, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// The compiled input schema of a tool.
#[derive(Debug)]
pub struct Validator {
    schema: Value,
    compiled: OnceLock<Option<json_schema::Validator>>,
}

impl Validator {
    /// An invalid schema accepts all arguments.
    pub fn new(schema: Value) -> Self {
        Validator { schema, compiled: OnceLock::new() }
    }

    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// All violations; empty if the arguments are valid.
    ///
    /// Arguments without a property are unknown, unless the schema explicitly allows additional ones. So a model learns about
    /// misspelled names, although JSON Schema allows additional properties by default.
    pub fn violations(&self, arguments: &Map<String, Value>) -> Vec<Violation> {
        let compiled = self.compiled.get_or_init(|| compile(&self.schema).ok());
        let (value, schema) = (Value::Object(arguments.clone()), View::new(&self.schema));
        let errors: Vec<_> = compiled.iter().flat_map(|validator| validator.iter_errors(&value)).collect();
        let mut found: Vec<_> =
            errors.iter().flat_map(meant).flat_map(|error| violations_of(error, schema, &value)).collect();
        if is_closed(schema) && schema.get("additionalProperties").is_none() {
            let unknown = arguments.keys().filter(|name| !schema.has_property(name));
            found.extend(unknown.map(|name| unknown_parameter("", name, Some(schema), &value)));
        }
        found.sort_by_key(|it| it.code as usize);
        found
    }
}

/// What an error says about parameters.
fn violations_of(error: &ValidationError<'_>, schema: View<'_>, arguments: &Value) -> Vec<Violation> {
    let (pointer, value) = (error.instance_path().as_str(), error.instance());
    let path = path_of(pointer);
    let length = || value.as_str().map_or_else(|| value.as_array().map_or(0, Vec::len), |text| text.chars().count());
    let number = |what: &str, limit: &Value| (Code::OutOfRange, format!("Value {value} {what} {limit}"));
    let size = |what: &str, how: &str, limit: &u64| (Code::OutOfRange, format!("{what} {} {how} {limit}", length()));
    let one_of = |choices: &[Value]| {
        let choices: Vec<_> = choices.iter().map(display_value).collect();
        (Code::EnumMismatch, format!("Value must be one of: {}", choices.join(", ")))
    };
    let (code, message) = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let schema = at(schema, pointer);
            return unexpected.iter().map(|name| unknown_parameter(&path, name, schema, value)).collect();
        }
        // Without properties, no member is allowed.
        Kind::FalseSchema if at(schema, pointer).is_some_and(|it| it.get("additionalProperties").is_some()) => {
            let members = arguments.pointer(pointer).and_then(Value::as_object);
            let names = members.into_iter().flat_map(Map::keys);
            return names.map(|name| unknown_parameter(&path, name, None, value)).collect();
        }
        Kind::Required { property } => {
            let parameter = member(&path, property.as_str().unwrap_or_default());
            let message = format!("Missing required parameter: {parameter}");
            return vec![Violation { parameter, code: Code::MissingRequired, message, hint: None }];
        }
        Kind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(name) => name.to_string(),
                TypeKind::Multiple(names) => names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" or "),
            };
            match path.ends_with(']') {
                true => (Code::InvalidArrayItems, format!("Invalid type for array item: expected {expected}")),
                false => (Code::InvalidType, format!("Invalid type for {path}: expected {expected}")),
            }
        }
        Kind::Enum { options } => one_of(options.as_array().map(Vec::as_slice).unwrap_or_default()),
        Kind::Constant { expected_value } => one_of(std::slice::from_ref(expected_value)),
        Kind::Minimum { limit } => number("is below minimum", limit),
        Kind::Maximum { limit } => number("exceeds maximum", limit),
        Kind::ExclusiveMinimum { limit } => number("is not above exclusive minimum", limit),
        Kind::ExclusiveMaximum { limit } => number("is not below exclusive maximum", limit),
        Kind::MinLength { limit } => size("Length", "is below minimum", limit),
        Kind::MaxLength { limit } => size("Length", "exceeds maximum", limit),
        Kind::MinItems { limit } => size("Number of items", "is below minimum", limit),
        Kind::MaxItems { limit } => size("Number of items", "exceeds maximum", limit),
        Kind::Pattern { pattern } => (Code::PatternMismatch, format!("Value does not match pattern: {pattern}")),
        _ => (Code::CustomValidationFailed, error.to_string()),
    };
    vec![Violation { parameter: path, code, message, hint: None }]
}

/// A parameter that the object at `path` does not have; its schema, if it is known, says which one may be meant.
fn unknown_parameter(path: &str, name: &str, schema: Option<View<'_>>, members: &Value) -> Violation {
    let names = schema.into_iter().flat_map(View::properties).map(|(name, _)| name);
    let missing: Vec<_> = names.filter(|name| members.get(name).is_none()).collect();
    let hint = nearest(name, &missing).map(|name| format!("did you mean {name}?"));
    let parameter = member(path, name);
    let message = format!("Unknown parameter: {parameter}");
    Violation { parameter, code: Code::UnknownParameter, message, hint }
}

/// The schema of the value at a JSON pointer; `None` below alternatives.
fn at<'s>(schema: View<'s>, pointer: &str) -> Option<View<'s>> {
    names_in(pointer).try_fold(schema, |schema, name| match name.parse() {
        Ok(index) => schema.item(index),
        Err(_) => schema.property(&name),
    })
}

/// Whether additional properties are errors.
fn is_closed(schema: View<'_>) -> bool {
    let is_open = ["patternProperties", "allOf", "anyOf", "oneOf", "if"].iter().any(|key| schema.get(key).is_some());
    let names_some = schema.properties().next().is_some();
    !is_open && schema.get("additionalProperties").map_or(names_some, |it| it == false)
}

/// The JSON pointer `/a/0/b` as the path `a[0].b`.
fn path_of(pointer: &str) -> String {
    names_in(pointer).fold(String::new(), |path, name| match name.parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) => member(&path, &name),
    })
}

fn names_in(pointer: &str) -> impl Iterator<Item = String> {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A value as text in a message.
pub(crate) fn display_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use rehearse_testing::table;
    use serde_json::json;

    use super::*;

    fn violations(schema: Value, arguments: Value) -> Vec<Violation> {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        Validator::new(schema).violations(&arguments)
    }

    /// Of a parameter `p` with this schema.
    fn of_one(schema: Value, value: Value) -> Vec<String> {
        let schema = json!({ "type": "object", "properties": { "p": schema } });
        let found = violations(schema, json!({ "p": value }));
        found.iter().map(|it| format!("{} {}: {}", it.parameter, it.code, it.message)).collect()
    }

    #[test]
    fn every_code_has_its_message() {
        for [schema, value, expected] in table::rows(include_str!("validate.txt"), "one value") {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            assert_eq!(of_one(parsed(&schema), parsed(&value)), [expected]);
        }
    }

    #[test]
    fn false_empty_and_zero_values_are_not_missing() {
        let schema = json!({ "properties": { "a": {}, "b": {}, "c": {}, "d": {} }, "required": ["a", "b", "c", "d"] });
        assert_eq!(violations(schema.clone(), json!({ "a": 0, "b": false, "c": "", "d": null })), []);
        let found = violations(schema, json!({ "a": 0, "b": false, "c": "" }));
        assert_eq!((found.len(), found[0].code), (1, Code::MissingRequired));
        assert_eq!(found[0].message, "Missing required parameter: d");
    }

    #[test]
    fn integers_and_values_without_a_type_are_valid() {
        for (schema, value) in [
            (json!({ "type": "integer" }), json!(5)),
            (json!({ "type": "integer" }), json!(5.0)),
            (json!({}), json!([1])),
            (json!({ "description": "anything" }), json!({ "a": 1 })),
            (json!({ "type": "array" }), json!([1])),
            (json!({ "type": "object" }), json!({})),
            (json!({ "enum": [1.0] }), json!(1)),
        ] {
            assert_eq!(of_one(schema, value), [""; 0]);
        }
        assert_eq!(of_one(json!({ "type": "integer" }), json!(5.5)).len(), 1);
    }

    #[test]
    fn an_unknown_parameter_is_reported_with_a_suggestion() {
        let schema = json!({ "properties": { "path": {}, "limit": {} } });
        let found = violations(schema, json!({ "limit": 1, "pth": 2 }));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "pth (UNKNOWN_PARAMETER): Unknown parameter: pth; did you mean path?");
    }

    #[test]
    fn an_open_schema_accepts_every_parameter() {
        for schema in [
            json!({ "type": "object" }),
            json!(null),
            json!({ "properties": { "a": {} }, "additionalProperties": true }),
            json!({ "properties": { "a": {} }, "additionalProperties": { "type": "integer" } }),
            json!({ "properties": { "a": {} }, "patternProperties": { "^b": {} } }),
        ] {
            assert_eq!(violations(schema.clone(), json!({ "b": 1 })), [], "{schema}");
        }
        let typed = json!({ "additionalProperties": { "type": "integer" } });
        assert_eq!(violations(typed, json!({ "b": "x" }))[0].code, Code::InvalidType);
        let none = json!({ "additionalProperties": false });
        assert_eq!(violations(none, json!({ "b": "x" }))[0].code, Code::UnknownParameter);
    }

    #[test]
    fn nested_values_are_reported_by_path() {
        let item = json!({ "type": "object", "required": ["b"], "properties": { "b": { "type": "integer" } } });
        let schema = json!({ "type": "array", "items": item });
        let expected = "p[0].b MISSING_REQUIRED: Missing required parameter: p[0].b";
        assert_eq!(of_one(schema.clone(), json!([{}])), [expected]);
        let expected = "p[1].b INVALID_TYPE: Invalid type for p[1].b: expected integer";
        assert_eq!(of_one(schema, json!([{ "b": 1 }, { "b": "x", "c": 1 }])), [expected]);
    }

    #[test]
    fn recursive_references_are_followed() {
        let schema = json!({ "properties": { "p": { "$ref": "#/$defs/node" } }, "$defs": {
            "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "n": { "type": "integer" } } },
            "loop": { "$ref": "#/$defs/loop" } } });
        let found = violations(schema, json!({ "p": { "next": { "n": "x" } } }));
        assert_eq!(found[0].parameter, "p.next.n");
        let looping = json!({ "properties": { "p": { "$ref": "#/properties/p" } } });
        assert_eq!(violations(looping, json!({ "p": 1 })), []);
    }

    #[test]
    fn a_single_alternative_of_a_type_is_checked_in_detail() {
        let optional = json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }] });
        assert_eq!(of_one(optional.clone(), json!(null)), [""; 0]);
        assert_eq!(of_one(optional, json!(0)), ["p OUT_OF_RANGE: Value 0 is below minimum 1"]);
        let several =
            json!({ "anyOf": [{ "type": "string", "pattern": "^a" }, { "type": "string", "pattern": "^b" }] });
        assert_eq!(of_one(several.clone(), json!("b")), [""; 0]);
        let found = of_one(several, json!("c"));
        assert!(found.len() == 1 && found[0].starts_with("p CUSTOM_VALIDATION_FAILED: "), "{found:?}");
    }

    #[test]
    fn keywords_without_a_code_are_checked_by_the_whole_schema() {
        let found = of_one(json!({ "type": "array", "items": { "not": { "const": 1 } } }), json!([1]));
        assert!(found.len() == 1 && found[0].starts_with("p[0] CUSTOM_VALIDATION_FAILED: "), "{found:?}");
    }

    #[test]
    fn an_invalid_pattern_accepts_everything() {
        assert_eq!(of_one(json!({ "type": "string", "pattern": "(" }), json!("a")), [""; 0]);
    }
}
