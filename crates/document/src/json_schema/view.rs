//! A view of a JSON Schema (2020-12, and what is left of older drafts): the types, properties and items that it allows.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json};

/// The maximum depth of references and alternatives.
const MAX_STEPS: usize = 16;
/// The maximum number of visited schemas in one query.
const MAX_VISITS: usize = 1_000;

/// A value of `type` (JSON Schema 2020-12 Validation, 6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

impl Type {
    /// In the order of the alphabet.
    pub(super) const ALL: [Type; 7] =
        [Type::Array, Type::Boolean, Type::Integer, Type::Null, Type::Number, Type::Object, Type::String];

    pub(super) fn parse(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|it| it.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Type::Array => "array",
            Type::Boolean => "boolean",
            Type::Integer => "integer",
            Type::Null => "null",
            Type::Number => "number",
            Type::Object => "object",
            Type::String => "string",
        }
    }

    pub fn matches(self, value: &Json) -> bool {
        match (self, value) {
            (Type::Null, Json::Null)
            | (Type::Boolean, Json::Bool(_))
            | (Type::Number, Json::Number(_))
            | (Type::Array, Json::Array(_))
            | (Type::Object, Json::Object(_))
            | (Type::String, Json::String(_)) => true,
            (Type::Integer, Json::Number(number)) => {
                number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
            }
            _ => false,
        }
    }
}

/// A schema within a document, in which its references are looked up.
#[derive(Clone, Copy, Debug)]
pub struct View<'s> {
    root: &'s Json,
    node: &'s Json,
    follows: bool,
}

impl<'s> View<'s> {
    /// A view that finds keywords behind references, too.
    pub fn new(root: &'s Json) -> Self {
        View { root, node: root, follows: true }
    }

    /// A view that leaves references alone.
    pub fn without_references(root: &'s Json) -> Self {
        View { root, node: root, follows: false }
    }

    pub fn json(self) -> &'s Json {
        self.node
    }

    fn at(self, node: &'s Json) -> Self {
        View { node, ..self }
    }

    /// What a reference within the document refers to.
    pub fn referred(self, reference: &str) -> Option<View<'s>> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            let pointer = percent_decode_str(fragment).decode_utf8_lossy();
            return self.root.pointer(&pointer).map(|node| self.at(node));
        }
        let is_anchor = |schema: &&Json| {
            ["$anchor", "$dynamicAnchor"].iter().any(|key| schema.get(key).is_some_and(|name| name == fragment))
        };
        let definitions = ["$defs", "definitions"].iter().filter_map(|key| self.root.get(key)?.as_object());
        let mut all = std::iter::once(self.root).chain(definitions.flat_map(Map::values));
        all.find(is_anchor).map(|node| self.at(node))
    }

    /// A keyword of the schema, else of the one that it refers to.
    pub fn get(self, keyword: &str) -> Option<&'s Json> {
        let mut schema = self;
        for _ in 0..MAX_STEPS {
            if let Some(value) = schema.node.get(keyword) {
                return Some(value);
            }
            schema = schema.referred(schema.node.get("$ref").filter(|_| self.follows)?.as_str()?)?;
        }
        None
    }

    pub fn number(self, keyword: &str) -> Option<f64> {
        self.get(keyword)?.as_f64()
    }

    pub fn count(self, keyword: &str) -> Option<usize> {
        self.get(keyword)?.as_u64().and_then(|count| count.try_into().ok())
    }

    pub fn text(self, keyword: &str) -> Option<&'s str> {
        self.get(keyword)?.as_str()
    }

    pub fn list(self, keyword: &str) -> Option<&'s [Json]> {
        self.get(keyword)?.as_array().map(Vec::as_slice)
    }

    /// The schemas in a list, such as `anyOf`.
    pub fn schemas(self, keyword: &str) -> Option<impl Iterator<Item = View<'s>>> {
        Some(self.list(keyword)?.iter().map(move |node| self.at(node)))
    }

    /// The types that the keyword `type` names.
    pub fn named_types(self) -> Option<Vec<Type>> {
        let named = |name: &Json| Type::parse(name.as_str()?);
        Some(match self.get("type")? {
            Json::Array(names) => names.iter().filter_map(named).collect(),
            name => named(name).into_iter().collect(),
        })
    }

    /// The allowed types; empty if the schema does not restrict them.
    pub fn types(self) -> Vec<Type> {
        self.collect_types(MAX_STEPS, &mut { MAX_VISITS })
    }

    fn collect_types(self, steps: usize, visits: &mut usize) -> Vec<Type> {
        if let Some(types) = self.named_types() {
            return types;
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
        } else if let Some(parts) = self.schemas("allOf") {
            types = parts.map(|part| part.collect_types(steps, visits)).find(|it| !it.is_empty()).unwrap_or_default();
        }
        types
    }

    /// The schemas of `anyOf` or `oneOf`.
    pub fn alternatives(self) -> Option<impl Iterator<Item = View<'s>>> {
        self.schemas(if self.get("anyOf").is_some() { "anyOf" } else { "oneOf" })
    }

    /// The first alternative with this type, or the schema itself.
    pub fn as_type(self, kind: Type) -> Self {
        let mut schema = self;
        for _ in 0..MAX_STEPS {
            let Some(mut schemas) = schema.alternatives() else { break };
            let Some(found) = schemas.find(|it| it.types().contains(&kind)) else { break };
            schema = found;
        }
        schema
    }

    /// The schema of a keyword, such as `additionalProperties`.
    pub fn schema(self, keyword: &str) -> Option<View<'s>> {
        self.get(keyword).map(|node| self.at(node))
    }

    /// The schemas that a keyword such as `patternProperties` names.
    pub fn named(self, keyword: &str) -> impl Iterator<Item = (&'s str, View<'s>)> {
        let members = self.get(keyword).and_then(Json::as_object).into_iter().flatten();
        members.map(move |(name, node)| (&**name, self.at(node)))
    }

    pub fn properties(self) -> impl Iterator<Item = (&'s str, View<'s>)> {
        self.named("properties")
    }

    /// The schema of a member: of its property, or of additional properties.
    pub fn property(self, name: &str) -> Option<View<'s>> {
        let named = self.get("properties").and_then(|members| members.get(name)).map(|node| self.at(node));
        named.or_else(|| self.schema("additionalProperties").filter(|it| it.node.is_object()))
    }

    pub fn has_property(self, name: &str) -> bool {
        self.get("properties").is_some_and(|members| members.get(name).is_some())
    }

    pub fn required(self) -> impl Iterator<Item = &'s str> {
        self.list("required").into_iter().flatten().filter_map(Json::as_str)
    }

    pub fn is_required(self, name: &str) -> bool {
        self.required().any(|required| required == name)
    }

    /// The schemas of the first items, and that of the further ones.
    pub fn items(self) -> (Option<Vec<View<'s>>>, Option<View<'s>>) {
        // Older drafts write a tuple as a list of `items`.
        let (first, rest) = match self.schemas("prefixItems") {
            Some(first) => (Some(first.collect()), "items"),
            None => match self.schemas("items") {
                Some(first) => (Some(first.collect()), "additionalItems"),
                None => (None, "items"),
            },
        };
        (first, self.schema(rest))
    }

    /// The schema of the array item with this index.
    pub fn item(self, index: usize) -> Option<View<'s>> {
        let (first, rest) = self.items();
        first.and_then(|first| first.get(index).copied()).or(rest)
    }

    /// The only values that are allowed, if the schema lists them.
    pub fn choices(self) -> Option<&'s [Json]> {
        self.get("const").map(std::slice::from_ref).or_else(|| self.list("enum"))
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
            let schema = View::new(&root).property("p").expect("a property");
            let mut visits = MAX_VISITS;
            assert_eq!((schema.collect_types(MAX_STEPS, &mut visits), schema.types()), (vec![], vec![]));
            assert!(!schema.as_type(Type::String).types().contains(&Type::String));
        }
    }

    #[test]
    fn types_are_found_in_alternatives_and_parts() {
        let root =
            json!({ "allOf": [{ "title": "t" }, { "oneOf": [{ "type": "string" }, { "type": ["null", "string"] }] }] });
        assert_eq!(View::new(&root).types(), [Type::String, Type::Null]);
    }

    #[test]
    fn a_keyword_beside_a_reference_comes_first() {
        let root = json!({ "$ref": "#/$defs/a%20b", "title": "own", "$defs": {
            "a b": { "$ref": "#x", "title": "other", "description": "d" }, "c": { "$anchor": "x", "type": "null" } } });
        let schema = View::new(&root);
        assert_eq!((schema.text("title"), schema.text("description")), (Some("own"), Some("d")));
        assert_eq!(schema.types(), [Type::Null]);
        assert_eq!(View::without_references(&root).text("description"), None);
    }
}
