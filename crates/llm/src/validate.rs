//! Validates the arguments of a call, parameter by parameter.
//!
//! The codes and most messages are those of MCPilot. A JSON Schema validator checks the keywords without a code (`not`,
//! `oneOf`, `format`…) and reports them as [`Code::CustomValidationFailed`].

use std::{fmt, sync::OnceLock};

use serde_json::{Map, Value, json};

use rehearse_document::{
    json_schema::{self, Type, View, accepts, compile},
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
        let mut checker = Checker::default();
        let schema = View::new(&self.schema);
        checker.members("", arguments, schema, is_closed(schema));
        if checker.violations.is_empty() {
            checker.violations = self.other_violations(arguments);
        }
        checker.violations
    }

    fn other_violations(&self, arguments: &Map<String, Value>) -> Vec<Violation> {
        let compiled = self.compiled.get_or_init(|| compile(&self.schema).ok());
        let arguments = Value::Object(arguments.clone());
        let Some(validator) = compiled.as_ref().filter(|validator| !validator.is_valid(&arguments)) else {
            return Vec::new();
        };
        let found = validator.iter_errors(&arguments).map(|error| Violation {
            parameter: path_of(error.instance_path().as_str()),
            code: Code::CustomValidationFailed,
            message: error.to_string(),
            hint: None,
        });
        found.collect()
    }
}

/// Whether additional properties are errors.
fn is_closed(schema: View<'_>) -> bool {
    let is_open = ["patternProperties", "allOf", "anyOf", "oneOf", "if"].iter().any(|key| schema.get(key).is_some());
    let names_some = schema.properties().next().is_some();
    !is_open && schema.get("additionalProperties").map_or(names_some, |it| it == false)
}

/// The JSON pointer `/a/0/b` as the path `a[0].b`.
fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")) {
        path = match part.parse::<usize>() {
            Ok(index) => format!("{path}[{index}]"),
            Err(_) => member(&path, &part),
        };
    }
    path
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A value as text in a message.
pub(crate) fn display_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[derive(Default)]
struct Checker {
    violations: Vec<Violation>,
}

impl Checker {
    fn add(&mut self, parameter: &str, code: Code, message: String) {
        self.violations.push(Violation { parameter: parameter.to_owned(), code, message, hint: None });
    }

    fn members(&mut self, path: &str, members: &Map<String, Value>, schema: View<'_>, is_closed: bool) {
        for name in schema.required().filter(|name| !members.contains_key(*name)) {
            let path = member(path, name);
            self.add(&path, Code::MissingRequired, format!("Missing required parameter: {path}"));
        }
        for (name, value) in members {
            let path = member(path, name);
            match schema.property(name) {
                Some(schema) => self.value(&path, value, schema, false),
                None if is_closed => self.unknown(&path, name, members, schema),
                None => {}
            }
        }
    }

    fn unknown(&mut self, path: &str, name: &str, members: &Map<String, Value>, schema: View<'_>) {
        let missing: Vec<_> = schema.properties().map(|it| it.0).filter(|it| !members.contains_key(*it)).collect();
        let hint = nearest(name, &missing).map(|name| format!("did you mean {name}?"));
        let message = format!("Unknown parameter: {path}");
        self.violations.push(Violation { parameter: path.to_owned(), code: Code::UnknownParameter, message, hint });
    }

    fn value(&mut self, path: &str, value: &Value, schema: View<'_>, is_item: bool) {
        let types = schema.types();
        if !types.is_empty() && !types.iter().any(|it| it.matches(value)) {
            let expected = types.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(" or ");
            return match is_item {
                true => {
                    let message = format!("Invalid type for array item: expected {expected}");
                    self.add(path, Code::InvalidArrayItems, message);
                }
                false => self.add(path, Code::InvalidType, format!("Invalid type for {path}: expected {expected}")),
            };
        }
        if let Some(choices) = schema.choices().filter(|choices| !choices.iter().any(|it| is_same(it, value))) {
            let choices = choices.iter().map(display_value).collect::<Vec<_>>().join(", ");
            return self.add(path, Code::EnumMismatch, format!("Value must be one of: {choices}"));
        }
        let Some(schema) = only_alternative(schema, value) else { return };
        match value {
            Value::Number(number) => self.range(path, number, schema),
            Value::String(text) => self.text(path, text, schema),
            Value::Array(items) => self.items(path, items, schema),
            Value::Object(members) => {
                self.members(path, members, schema, schema.get("additionalProperties").is_some_and(|it| it == false));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn range(&mut self, path: &str, number: &serde_json::Number, schema: View<'_>) {
        type Breaks = fn(f64, f64) -> bool;
        const LIMITS: [(&str, Breaks, &str); 4] = [
            ("minimum", |value, limit| value < limit, "is below minimum"),
            ("maximum", |value, limit| value > limit, "exceeds maximum"),
            ("exclusiveMinimum", |value, limit| value <= limit, "is not above exclusive minimum"),
            ("exclusiveMaximum", |value, limit| value >= limit, "is not below exclusive maximum"),
        ];
        let Some(value) = number.as_f64() else { return };
        for (keyword, breaks, what) in LIMITS {
            if schema.number(keyword).is_some_and(|limit| breaks(value, limit)) {
                let limit = schema.get(keyword).map(display_value).unwrap_or_default();
                self.add(path, Code::OutOfRange, format!("Value {number} {what} {limit}"));
            }
        }
    }

    fn text(&mut self, path: &str, text: &str, schema: View<'_>) {
        self.size(path, text.chars().count(), schema, "Length", ["minLength", "maxLength"]);
        let Some(pattern) = schema.text("pattern") else { return };
        if accepts(&json!({ "pattern": pattern }), &text.into()) == Some(false) {
            self.add(path, Code::PatternMismatch, format!("Value does not match pattern: {pattern}"));
        }
    }

    fn items(&mut self, path: &str, items: &[Value], schema: View<'_>) {
        self.size(path, items.len(), schema, "Number of items", ["minItems", "maxItems"]);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = schema.item(index) {
                self.value(&format!("{path}[{index}]"), item, schema, true);
            }
        }
    }

    fn size(&mut self, path: &str, size: usize, schema: View<'_>, what: &str, keywords: [&str; 2]) {
        let [min, max] = keywords.map(|keyword| schema.count(keyword));
        if let Some(min) = min.filter(|min| size < *min) {
            self.add(path, Code::OutOfRange, format!("{what} {size} is below minimum {min}"));
        }
        if let Some(max) = max.filter(|max| size > *max) {
            self.add(path, Code::OutOfRange, format!("{what} {size} exceeds maximum {max}"));
        }
    }
}

/// The only alternative with the type of the value; `None` if several have it.
fn only_alternative<'s>(schema: View<'s>, value: &Value) -> Option<View<'s>> {
    let Some(alternatives) = schema.alternatives() else { return Some(schema) };
    let takes = |schema: &View<'_>| {
        let types: Vec<Type> = schema.types();
        types.is_empty() || types.iter().any(|it| it.matches(value))
    };
    let mut fitting = alternatives.filter(takes);
    fitting.next().filter(|schema| fitting.next().is_none() && schema.alternatives().is_none())
}

/// Compares values; `1` and `1.0` are equal.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| other.as_f64() == Some(number))
}

#[cfg(test)]
mod tests {
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
        let table = [
            (json!({ "type": "integer" }), json!("a"), "p INVALID_TYPE: Invalid type for p: expected integer"),
            (
                json!({ "type": ["string", "null"] }),
                json!(1),
                "p INVALID_TYPE: Invalid type for p: expected string or null",
            ),
            (json!({ "type": "number", "minimum": 2 }), json!(1), "p OUT_OF_RANGE: Value 1 is below minimum 2"),
            (json!({ "type": "number", "maximum": 2.5 }), json!(3), "p OUT_OF_RANGE: Value 3 exceeds maximum 2.5"),
            (json!({ "exclusiveMinimum": 1 }), json!(1), "p OUT_OF_RANGE: Value 1 is not above exclusive minimum 1"),
            (json!({ "exclusiveMaximum": 1 }), json!(1), "p OUT_OF_RANGE: Value 1 is not below exclusive maximum 1"),
            (json!({ "minLength": 2 }), json!("é"), "p OUT_OF_RANGE: Length 1 is below minimum 2"),
            (json!({ "maxItems": 1 }), json!([1, 2]), "p OUT_OF_RANGE: Number of items 2 exceeds maximum 1"),
            (
                json!({ "type": "string", "pattern": "^a(?=b)" }),
                json!("ac"),
                "p PATTERN_MISMATCH: Value does not match pattern: ^a(?=b)",
            ),
            (json!({ "enum": ["a", 2] }), json!("b"), "p ENUM_MISMATCH: Value must be one of: a, 2"),
            (json!({ "const": "a" }), json!("b"), "p ENUM_MISMATCH: Value must be one of: a"),
            (
                json!({ "type": "array", "items": { "type": "string" } }),
                json!(["a", 1]),
                "p[1] INVALID_ARRAY_ITEMS: Invalid type for array item: expected string",
            ),
        ];
        for (schema, value, expected) in table {
            assert_eq!(of_one(schema, value), [expected]);
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
