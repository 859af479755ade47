//! The branches of an input schema: what the values of arguments may be.

use serde_json::{Map, Value as Json};

use rehearse_document::json_schema::accepts;
use rehearse_report::CoverageBranch;

/// Each branch of the schema, and whether one of the arguments takes it: a property that is given, or absent if it may be;
/// a value of an `enum`; a schema of `anyOf` or `oneOf`.
pub(super) fn branches(schema: &Json, arguments: &[Json]) -> Vec<CoverageBranch> {
    let mut walk = Walk { root: schema, references: Vec::new(), found: Vec::new() };
    walk.schema(schema, "", &arguments.iter().collect::<Vec<_>>());
    walk.found
}

struct Walk<'s> {
    root: &'s Json,
    /// The references that lead to the current schema. One that comes again is not followed.
    references: Vec<&'s str>,
    found: Vec<CoverageBranch>,
}

impl<'s> Walk<'s> {
    fn branch(&mut self, name: String, covered: bool) {
        self.found.push(CoverageBranch { name, covered });
    }

    /// The branches of a schema at a place in the arguments, by the values there.
    fn schema(&mut self, schema: &'s Json, at: &str, values: &[&Json]) {
        if let Some(reference) = schema["$ref"].as_str().filter(|it| !self.references.contains(it)) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            self.references.push(reference);
            target.into_iter().for_each(|target| self.schema(target, at, values));
            self.references.pop();
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let objects = values.iter().filter_map(|value| value.as_object());
            let given: Vec<_> = objects.clone().filter_map(|object| object.get(name)).collect();
            let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            self.branch(format!("{at} given"), !given.is_empty());
            let is_required = schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
            if !is_required {
                let is_absent = objects.clone().any(|object| !object.contains_key(name));
                self.branch(format!("{at} absent"), is_absent);
            }
            self.schema(property, &at, &given);
        }
        for value in schema["enum"].as_array().into_iter().flatten() {
            self.branch(format!("{at} = {value}"), values.contains(&value));
        }
        for key in ["anyOf", "oneOf"] {
            for (index, option) in schema[key].as_array().into_iter().flatten().enumerate() {
                let whole = self.with_definitions(option);
                let taken = values.iter().copied().filter(|value| accepts(&whole, value) == Some(true));
                let taken: Vec<_> = taken.collect();
                let at = format!("{at} {key} {}", index + 1);
                self.branch(at.trim_start().to_owned(), !taken.is_empty());
                self.schema(option, &at, &taken);
            }
        }
        schema["allOf"].as_array().into_iter().flatten().for_each(|part| self.schema(part, at, values));
        if schema["items"].is_object() {
            let items = values.iter().filter_map(|value| value.as_array()).flatten();
            self.schema(&schema["items"], &format!("{at}/*"), &items.collect::<Vec<_>>());
        }
    }

    /// A part of the schema that can be used alone.
    fn with_definitions(&self, part: &Json) -> Json {
        let mut members: Map<String, Json> = part.as_object().cloned().unwrap_or_default();
        for key in ["$schema", "$defs", "definitions"] {
            if let Some(value) = self.root.get(key) {
                members.entry(key).or_insert_with(|| value.clone());
            }
        }
        if part.is_object() { members.into() } else { part.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_branch_is_named_and_covered_by_a_value() {
        let schema = json!({
            "properties": {
                "city": { "type": "string" },
                "unit": { "enum": ["C", "F"] },
                "area": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/area" }] },
                "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
            },
            "required": ["city"],
            "$defs": { "area": {
                "type": "object",
                "properties": { "radius": {}, "inner": { "$ref": "#/$defs/area" } },
                "required": ["radius"],
            } },
        });
        let covered = |arguments: &[Json]| {
            let found = branches(&schema, arguments);
            let covered = found.iter().filter(|it| it.covered).map(|it| it.name.clone()).collect::<Vec<_>>();
            (covered.join(", "), found.len())
        };
        assert_eq!(covered(&[]), (String::new(), 16));
        assert_eq!(covered(&[json!({ "city": "x" })]).0, "/city given, /unit absent, /area absent, /tags absent");
        let (all, _) = covered(&[json!({ "city": "x", "unit": "F", "area": { "radius": 1 }, "tags": ["b"] })]);
        let expected = "/city given, /unit given, /unit = \"F\", /area given, /area anyOf 2, /area anyOf 2/radius given, \
                        /area anyOf 2/inner absent, /tags given, /tags/* = \"b\"";
        assert_eq!(all, expected);
        let root = json!({ "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
        let found = branches(&root, &[json!({ "b": 1 })]);
        assert_eq!(
            found.iter().map(|it| (&*it.name, it.covered)).collect::<Vec<_>>(),
            [("oneOf 1", false), ("oneOf 2", true)]
        );
    }
}
