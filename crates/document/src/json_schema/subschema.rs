//! The schemas within a schema.

use serde_json::Value as Json;

/// A schema, or one within it.
#[derive(Clone, Copy, Debug)]
pub struct Subschema<'s> {
    pub json: &'s Json,
    /// The name of the property that has it; empty elsewhere.
    pub property: &'s str,
    /// Whether nothing but `properties` leads to it.
    pub is_reachable: bool,
}

/// Visits a schema and those within it. Values that only look like schemas are left out.
pub fn subschemas<'s>(schema: &'s Json, visit: &mut impl FnMut(Subschema<'s>)) {
    walk(schema, "", true, visit);
}

fn walk<'s>(schema: &'s Json, property: &'s str, is_reachable: bool, visit: &mut impl FnMut(Subschema<'s>)) {
    let Json::Object(keywords) = schema else { return };
    visit(Subschema { json: schema, property, is_reachable });
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("const" | "default" | "dependentRequired" | "enum" | "examples", _) => {}
            ("properties", Json::Object(named)) => {
                named.iter().for_each(|(name, schema)| walk(schema, name, is_reachable, visit));
            }
            (
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties",
                Json::Object(named),
            ) => named.values().for_each(|schema| walk(schema, "", false, visit)),
            (_, Json::Array(schemas)) => schemas.iter().for_each(|schema| walk(schema, "", false, visit)),
            (_, schema) => walk(schema, "", false, visit),
        }
    }
}
