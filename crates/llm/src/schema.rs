//! A view of a JSON Schema: the types, properties and items that it allows.

use serde_json::{Map, Value};

/// The maximum depth of references and alternatives.
const MAX_STEPS: usize = 16;
/// The maximum number of visited schemas in one query.
const MAX_VISITS: usize = 1_000;

/// A type of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    Array,
    Object,
    String,
}

impl Type {
    const ALL: [Type; 7] =
        [Type::Null, Type::Boolean, Type::Integer, Type::Number, Type::Array, Type::Object, Type::String];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Array => "array",
            Type::Object => "object",
            Type::String => "string",
        }
    }

    pub(super) fn matches(self, value: &Value) -> bool {
        match (self, value) {
            (Type::Null, Value::Null)
            | (Type::Boolean, Value::Bool(_))
            | (Type::Number, Value::Number(_))
            | (Type::Array, Value::Array(_))
            | (Type::Object, Value::Object(_))
            | (Type::String, Value::String(_)) => true,
            (Type::Integer, Value::Number(number)) => {
                number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
            }
            _ => false,
        }
    }
}

/// A schema within a tool's input schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'s> {
    root: &'s Value,
    node: &'s Value,
}

impl<'s> Schema<'s> {
    pub(super) fn new(root: &'s Value) -> Self {
        Schema { root, node: root }.resolved()
    }

    fn at(self, node: &'s Value) -> Self {
        Schema { root: self.root, node }.resolved()
    }

    /// Follows references within the document.
    fn resolved(mut self) -> Self {
        for _ in 0..MAX_STEPS {
            let Some(pointer) = self.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#')) else {
                break;
            };
            let Some(node) = self.root.pointer(pointer) else { break };
            self.node = node;
        }
        self
    }

    pub(super) fn get(self, keyword: &str) -> Option<&'s Value> {
        self.node.get(keyword)
    }

    pub(super) fn number(self, keyword: &str) -> Option<f64> {
        self.get(keyword)?.as_f64()
    }

    pub(super) fn count(self, keyword: &str) -> Option<usize> {
        self.get(keyword)?.as_u64().and_then(|count| count.try_into().ok())
    }

    pub(super) fn text(self, keyword: &str) -> Option<&'s str> {
        self.get(keyword)?.as_str()
    }

    /// The allowed types; empty if the schema does not restrict them.
    pub(super) fn types(self) -> Vec<Type> {
        self.collect_types(MAX_STEPS, &mut { MAX_VISITS })
    }

    fn collect_types(self, steps: usize, visits: &mut usize) -> Vec<Type> {
        let named = |value: &Value| Type::ALL.into_iter().find(|it| Some(it.as_str()) == value.as_str());
        match self.get("type") {
            Some(Value::Array(names)) => return names.iter().filter_map(named).collect(),
            Some(name) => return named(name).into_iter().collect(),
            None => {}
        }
        let (Some(steps), Some(rest)) = (steps.checked_sub(1), visits.checked_sub(1)) else { return Vec::new() };
        *visits = rest;
        let mut types = Vec::new();
        if let Some(schemas) = self.alternatives() {
            for schema in schemas {
                let further = schema.collect_types(steps, visits);
                if further.is_empty() {
                    return Vec::new();
                }
                types.extend(further.into_iter().filter(|it| !types.contains(it)).collect::<Vec<_>>());
            }
        } else if let Some(Value::Array(nodes)) = self.get("allOf") {
            types = nodes
                .iter()
                .map(|node| self.at(node).collect_types(steps, visits))
                .find(|types| !types.is_empty())
                .unwrap_or_default();
        }
        types
    }

    /// The schemas of `anyOf` or `oneOf`.
    pub(super) fn alternatives(self) -> Option<impl Iterator<Item = Schema<'s>>> {
        let nodes = self.get("anyOf").or_else(|| self.get("oneOf"))?.as_array()?;
        Some(nodes.iter().map(move |node| self.at(node)))
    }

    /// The first alternative with this type, or the schema itself.
    pub(super) fn as_type(self, kind: Type) -> Self {
        let mut schema = self;
        for _ in 0..MAX_STEPS {
            let Some(mut schemas) = schema.alternatives() else { break };
            let Some(found) = schemas.find(|it| it.types().contains(&kind)) else { break };
            schema = found;
        }
        schema
    }

    pub(super) fn properties(self) -> impl Iterator<Item = (&'s str, Schema<'s>)> {
        let members = self.members().into_iter().flatten();
        members.map(move |(name, node)| (&**name, self.at(node)))
    }

    fn members(self) -> Option<&'s Map<String, Value>> {
        self.get("properties")?.as_object()
    }

    /// The schema of a member: of its property, or of additional properties.
    pub(super) fn property(self, name: &str) -> Option<Schema<'s>> {
        let named = self.members().and_then(|members| members.get(name));
        let node = named.or_else(|| self.get("additionalProperties").filter(|node| node.is_object()))?;
        Some(self.at(node))
    }

    pub(super) fn has_property(self, property: &str) -> bool {
        self.members().is_some_and(|members| members.contains_key(property))
    }

    pub(super) fn required(self) -> impl Iterator<Item = &'s str> {
        self.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub(super) fn is_required(self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// The schema of the array item with this index.
    pub(super) fn item(self, index: usize) -> Option<Schema<'s>> {
        let tuple = self.get("prefixItems").and_then(Value::as_array).and_then(|nodes| nodes.get(index));
        tuple.or_else(|| self.get("items").filter(|node| node.is_object())).map(|node| self.at(node))
    }

    /// The only values that are allowed, if the schema lists them.
    pub(super) fn choices(self) -> Option<Vec<&'s Value>> {
        match (self.get("enum"), self.get("const")) {
            (Some(Value::Array(values)), _) => Some(values.iter().collect()),
            (_, Some(value)) => Some(vec![value]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recursive_schema_is_visited_only_up_to_the_limit() {
        let itself = || json!({ "$ref": "#/properties/p" });
        for keyword in ["allOf", "anyOf"] {
            let several: Vec<_> = (0..8).map(|_| itself()).collect();
            let root = json!({ "properties": { "p": { keyword: several } } });
            let schema = Schema::new(&root).property("p").expect("a property");
            let mut visits = MAX_VISITS;
            assert_eq!((schema.collect_types(MAX_STEPS, &mut visits), schema.types()), (vec![], vec![]));
            assert!(!schema.as_type(Type::String).types().contains(&Type::String));
        }
    }

    #[test]
    fn types_are_found_in_alternatives_and_parts() {
        let root =
            json!({ "allOf": [{ "title": "t" }, { "oneOf": [{ "type": "string" }, { "type": ["null", "string"] }] }] });
        assert_eq!(Schema::new(&root).types(), [Type::String, Type::Null]);
    }
}
