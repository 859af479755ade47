//! Forms of elicitation requests: the fields from the schema, and the values that the user types (2025-11-25, Elicitation:
//! Requested Schema). No IO.

use rehearse_document::json_schema::{View, compile_with_formats};
use serde_json::Value;

/// The requested properties, in the order of the server.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) fields: Vec<Field>,
}

/// A property of the schema.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    title: Option<String>,
    description: Option<String>,
    is_required: bool,
    default: Option<Value>,
    kind: FieldKind,
    schema: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Text,
    Integer,
    Number,
    Boolean,
    OneOf,
    AnyOf,
    /// A type that the protocol does not allow in forms.
    Json,
}

/// An allowed value and its title.
struct Choice<'f> {
    value: &'f Value,
    title: Option<&'f str>,
}

impl Form {
    /// The form of a schema; empty if it has no properties.
    pub(super) fn parse(schema: &Value) -> Form {
        let form = View::new(schema);
        let field = |(name, schema): (&str, View<'_>)| Field {
            title: schema.text("title").map(str::to_owned),
            description: schema.text("description").map(str::to_owned),
            is_required: form.is_required(name),
            default: schema.get("default").cloned(),
            kind: FieldKind::from_schema(schema.json()),
            schema: schema.json().clone(),
            name: name.to_owned(),
        };
        Form { fields: form.properties().map(field).collect() }
    }
}

impl FieldKind {
    fn from_schema(schema: &Value) -> FieldKind {
        let has_choices = |schema: &Value| ["enum", "oneOf", "anyOf"].iter().any(|key| schema[*key].is_array());
        match schema["type"].as_str() {
            Some("array") if has_choices(&schema["items"]) => FieldKind::AnyOf,
            Some("string") | None if has_choices(schema) => FieldKind::OneOf,
            Some("string") => FieldKind::Text,
            Some("integer") => FieldKind::Integer,
            Some("number") => FieldKind::Number,
            Some("boolean") => FieldKind::Boolean,
            _ => FieldKind::Json,
        }
    }
}

impl Field {
    /// The lines that describe the field.
    pub(super) fn about(&self) -> Vec<String> {
        let mut first = match &self.title {
            Some(title) => format!("{title} ({})", self.name),
            None => self.name.clone(),
        };
        if let Some(description) = &self.description {
            first.push_str(&format!(": {description}"));
        }
        let mut facts = vec![self.kind_in_words()];
        facts.push(if self.is_required { "required".to_owned() } else { "optional".to_owned() });
        if let Some(default) = &self.default {
            facts.push(format!("default {default}"));
        }
        let mut lines = vec![first, format!("  {}", facts.join(", "))];
        for (number, Choice { value, title }) in self.choices().iter().enumerate() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let title = title.map(|title| format!(": {title}")).unwrap_or_default();
            lines.push(format!("  {}) {value}{title}", number + 1));
        }
        lines
    }

    fn kind_in_words(&self) -> String {
        let schema = &self.schema;
        match self.kind {
            FieldKind::Text => schema["format"].as_str().map_or_else(|| "text".to_owned(), |it| format!("text ({it})")),
            FieldKind::Integer => "a whole number".to_owned(),
            FieldKind::Number => "a number".to_owned(),
            FieldKind::Boolean => "yes or no".to_owned(),
            FieldKind::OneOf => "one of these".to_owned(),
            FieldKind::AnyOf => "any of these, with commas between them".to_owned(),
            FieldKind::Json => "JSON".to_owned(),
        }
    }

    fn choices(&self) -> Vec<Choice<'_>> {
        let schema = match self.kind {
            FieldKind::OneOf => &self.schema,
            FieldKind::AnyOf => &self.schema["items"],
            _ => return Vec::new(),
        };
        let titled = ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        let titled =
            titled.filter_map(|choice| Some(Choice { value: choice.get("const")?, title: choice["title"].as_str() }));
        // 2025-06-18 has the titles in a separate list.
        let names = |number: usize| schema["enumNames"][number].as_str();
        let plain = schema["enum"].as_array().into_iter().flatten().enumerate();
        plain.map(|(number, value)| Choice { value, title: names(number) }).chain(titled).collect()
    }

    /// Reads a typed value. An empty line is the default, or no value; `""` is the empty string.
    ///
    /// # Errors
    /// What the field expects.
    pub(super) fn read(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.trim();
        if text.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(format!("{} is required", self.name)),
            };
        }
        let wanted = |what: &str| format!("{text:?} is not a {what}");
        let value = match self.kind {
            FieldKind::Text if text == "\"\"" => Value::from(""),
            FieldKind::Text => Value::from(text),
            FieldKind::Integer => text.parse::<i64>().map(Value::from).map_err(|_| wanted("whole number"))?,
            FieldKind::Number => {
                let number = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
                number.ok_or_else(|| wanted("number"))?
            }
            FieldKind::Boolean => match &*text.to_lowercase() {
                "y" | "yes" | "true" => Value::from(true),
                "n" | "no" | "false" => Value::from(false),
                _ => return Err(format!("{text:?} is not yes or no")),
            },
            FieldKind::OneOf => self.choice(text)?,
            FieldKind::AnyOf => {
                text.split(',').map(|part| self.choice(part.trim())).collect::<Result<Vec<_>, _>>()?.into()
            }
            FieldKind::Json => {
                serde_json::from_str(text).map_err(|error| format!("{text:?} is not valid JSON: {error}"))?
            }
        };
        self.check(&value)?;
        Ok(Some(value))
    }

    /// The choice with this value, title or number.
    fn choice(&self, text: &str) -> Result<Value, String> {
        let choices = self.choices();
        let by_value = choices.iter().find(|choice| choice.value.as_str() == Some(text));
        let is_titled = |choice: &&Choice<'_>| choice.title.is_some_and(|title| title.eq_ignore_ascii_case(text));
        let by_number = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
        let found = by_value.or_else(|| choices.iter().find(is_titled)).or_else(by_number);
        found.map(|choice| choice.value.clone()).ok_or_else(|| {
            let all: Vec<_> = choices.iter().map(|choice| choice.value.as_str().unwrap_or_default()).collect();
            format!("{text:?} is not one of {}", all.join(", "))
        })
    }

    /// Checks a value against the schema. An invalid schema accepts every value.
    ///
    /// # Errors
    /// The violation.
    fn check(&self, value: &Value) -> Result<(), String> {
        let found = compile_with_formats(&self.schema)
            .ok()
            .and_then(|validator| Some(validator.iter_errors(value).next()?.to_string()));
        found.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn filled(form: &Form, texts: &[&str]) -> Result<Value, String> {
        let mut content = Map::new();
        for (field, text) in form.fields.iter().zip(texts) {
            field.read(text)?.map(|value| content.insert(field.name.clone(), value));
        }
        Ok(content.into())
    }

    fn form() -> Form {
        Form::parse(&json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Your name", "description": "As on the badge", "minLength": 2 },
                "age": { "type": "integer", "minimum": 18 },
                "weight": { "type": "number" },
                "vip": { "type": "boolean", "default": false },
                "size": { "type": "string", "enum": ["s", "m", "3"], "enumNames": ["Small", "Medium", "Three"] },
                "tags": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "Ada" }, { "const": "b" }] },
                          "maxItems": 2 },
                "more": { "type": "object" },
            },
            "required": ["name", "size"],
        }))
    }

    #[test]
    fn typed_text_is_converted_to_the_type_of_the_schema() {
        for (texts, expected) in [
            (
                ["Ada", "36", "1.5", "yes", "m", "a, b", "{\"x\": 1}"],
                json!({ "name": "Ada", "age": 36, "weight": 1.5, "vip": true, "size": "m", "tags": ["a", "b"], "more": { "x": 1 } }),
            ),
            (["  Bo ", "", "", "", "small", "", ""], json!({ "name": "Bo", "vip": false, "size": "s" })),
            (["Bo", "", "", "N", "3", "ADA", ""], json!({ "name": "Bo", "vip": false, "size": "3", "tags": ["a"] })),
            (["Bo", "", "", "", "2", "2", ""], json!({ "name": "Bo", "vip": false, "size": "m", "tags": ["b"] })),
        ] {
            assert_eq!(filled(&form(), &texts), Ok(expected), "{texts:?}");
        }
    }

    #[test]
    fn violations_of_the_schema_are_reported() {
        let form = form();
        for (index, text, error) in [
            (0, "", "name is required"),
            (0, "A", "\"A\" is shorter than 2 characters"),
            (1, "1.5", "\"1.5\" is not a whole number"),
            (1, "17", "17 is less than the minimum of 18"),
            (2, "x", "\"x\" is not a number"),
            (3, "maybe", "\"maybe\" is not yes or no"),
            (4, "4", "\"4\" is not one of s, m, 3"),
            (4, "0", "\"0\" is not one of s, m, 3"),
            (5, "a,c", "\"c\" is not one of a, b"),
            (5, "a,b,a", "[\"a\",\"b\",\"a\"] has more than 2 items"),
        ] {
            assert_eq!(form.fields[index].read(text), Err(error.to_owned()));
        }
        assert!(form.fields[6].read("{").is_err_and(|error| error.starts_with("\"{\" is not valid JSON")));
        let free = Form::parse(&json!({ "properties": { "t": { "type": "string" } }, "required": ["t"] }));
        assert_eq!(free.fields[0].read("\"\""), Ok(Some("".into())));
    }

    #[test]
    fn a_field_describes_its_type_and_choices() {
        let fields = form().fields;
        assert_eq!(fields[0].about(), ["Your name (name): As on the badge", "  text, required"]);
        assert_eq!(fields[3].about(), ["vip", "  yes or no, optional, default false"]);
        assert_eq!(
            fields[4].about(),
            ["size", "  one of these, required", "  1) s: Small", "  2) m: Medium", "  3) 3: Three"]
        );
        assert_eq!(Form::parse(&Value::Null).fields.len(), 0);
    }
}
