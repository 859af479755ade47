//! The schemas of tools, and the headers in them.

use std::collections::HashSet;

use serde_json::Value;

use super::common::{items, shown};
use crate::{Evidence, Judgement, Level};

const LIST: &str = "tools/list";
const HEADER: &str = "x-mcp-header";
const DIALECTS: [&str; 5] =
    ["2020-12/schema", "2019-09/schema", "draft-07/schema", "draft-06/schema", "draft-04/schema"];
/// The largest integer that every JSON reader keeps.
const LARGEST: f64 = 9_007_199_254_740_991.0;
/// Names of parameters that are secrets.
const SECRETS: [&str; 8] =
    ["password", "passwd", "secret", "apikey", "accesstoken", "authtoken", "bearertoken", "privatekey"];

pub(super) fn schemas(evidence: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for (tool, name, call) in items(evidence, LIST) {
        let schema = match tool.get(key) {
            Some(schema) => schema,
            None if key == "inputSchema" => &Value::Null,
            None => continue,
        };
        if !j.violations.iter().any(|it| it.subject.as_deref() == Some(name)) {
            j.check_at(holds(schema), Some(name.to_owned()), call.places(), || shown(schema));
        }
    }
}

pub(super) fn is_known(dialect: &Value) -> bool {
    dialect.as_str().is_some_and(|it| DIALECTS.iter().any(|known| it.trim_end_matches('#').ends_with(known)))
}

/// Whether a schema is valid in its dialect; one of an unknown dialect is not judged.
pub(super) fn is_valid_schema(schema: &Value) -> bool {
    let is_valid = || jsonschema::meta::validator_for(schema).map_or(true, |it| it.is_valid(schema));
    schema.get("$schema").is_some_and(|dialect| !is_known(dialect)) || is_valid()
}

/// Checks every member of this name in the input schemas.
pub(super) fn with_member(
    evidence: &Evidence<'_>,
    j: &mut Judgement,
    key: &str,
    holds: impl Fn(&Value, &Value) -> bool,
) {
    for (tool, name, call) in items(evidence, LIST) {
        let schema = &tool["inputSchema"];
        let mut found = Vec::new();
        subschemas(schema, &mut |it| found.extend(it.get(key)));
        for value in found {
            j.check_at(holds(schema, value), Some(name.to_owned()), call.places(), || shown(value));
        }
    }
}

/// Visits a schema and those in it. Values that only look like schemas are left out.
pub(super) fn subschemas<'v>(schema: &'v Value, visit: &mut impl FnMut(&'v serde_json::Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    visit(members);
    for (key, value) in members {
        match (key.as_str(), value) {
            ("const" | "enum" | "default" | "examples", _) => {}
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                schemas.values().for_each(|schema| subschemas(schema, visit));
            }
            (_, Value::Object(_)) => subschemas(value, visit),
            (_, Value::Array(schemas)) => schemas.iter().for_each(|schema| subschemas(schema, visit)),
            _ => {}
        }
    }
}

pub(super) fn resolves(schema: &Value, reference: &Value) -> bool {
    let Some(pointer) = reference.as_str().and_then(|it| it.strip_prefix('#')) else { return true };
    let has_base = schema.get("$id").is_some();
    // An anchor, or a pointer below another base, is not followed.
    has_base
        || !(pointer.is_empty() || pointer.starts_with('/'))
        || schema.pointer(&pointer.replace("%24", "$")).is_some()
}

/// An `x-mcp-header` of a schema.
pub(super) struct Header<'v> {
    pub(super) name: &'v Value,
    pub(super) schema: &'v Value,
    /// The name of the property; empty outside of `properties`.
    property: &'v str,
    /// Whether it stands below `properties` alone.
    pub(super) is_reachable: bool,
}

pub(super) fn find_headers<'v>(schema: &'v Value, property: &'v str, is_reachable: bool, out: &mut Vec<Header<'v>>) {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get(HEADER) {
                out.push(Header { name, schema, property, is_reachable });
            }
            for (key, value) in members {
                match (key.as_str(), value) {
                    ("const" | "enum" | "default" | "examples", _) => {}
                    ("properties", Value::Object(properties)) => {
                        properties.iter().for_each(|(name, it)| find_headers(it, name, is_reachable, out));
                    }
                    ("$defs" | "definitions" | "patternProperties", Value::Object(schemas)) => {
                        schemas.values().for_each(|it| find_headers(it, "", false, out));
                    }
                    _ => find_headers(value, "", false, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_headers(item, "", false, out)),
        _ => {}
    }
}

pub(super) fn headers(evidence: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Header<'_>) -> bool) {
    for (tool, name, call) in items(evidence, LIST) {
        let mut found = Vec::new();
        find_headers(&tool["inputSchema"], "", true, &mut found);
        for header in found {
            j.check_at(holds(&header), Some(name.to_owned()), call.places(), || {
                format!("`{HEADER}: {}`", shown(header.name))
            });
        }
    }
}

pub(super) fn is_token(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it))
}

pub(super) fn unique_headers(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(evidence, LIST) {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        find_headers(&tool["inputSchema"], "", true, &mut found);
        for header in found.iter().filter_map(|header| header.name.as_str()) {
            let is_new = seen.insert(header.to_ascii_lowercase());
            j.check_at(is_new, Some(name.to_owned()), call.places(), || format!("the header {header:?} twice"));
        }
    }
}

/// Whether the type is one that may have a header. One that is optional by its type is only doubtful.
pub(super) fn primitive_headers(evidence: &Evidence<'_>, j: &mut Judgement) {
    let is_primitive = |kind: &Value| ["integer", "string", "boolean"].iter().any(|it| kind == it);
    for (tool, name, call) in items(evidence, LIST) {
        let mut found = Vec::new();
        find_headers(&tool["inputSchema"], "", true, &mut found);
        for header in found {
            let kind = &header.schema["type"];
            j.check_at(is_primitive(kind), Some(name.to_owned()), call.places(), || format!("`type: {}`", shown(kind)));
            let kinds = kind.as_array().map(Vec::as_slice).unwrap_or_default();
            if kinds.iter().any(is_primitive) && kinds.iter().all(|it| is_primitive(it) || it == "null") {
                j.at_level(Level::Derived);
            }
        }
    }
}

/// The values that the schema names are safe integers; bounds beyond them only allow unsafe ones.
pub(super) fn safe_integers(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(evidence, LIST) {
        let mut found = Vec::new();
        find_headers(&tool["inputSchema"], "", true, &mut found);
        for schema in found.iter().map(|header| header.schema).filter(|schema| schema["type"] == "integer") {
            let values =
                ["const", "default", "minimum", "maximum"].iter().filter_map(|key| Some((*key, schema.get(key)?)));
            let listed = schema["enum"].as_array().into_iter().flatten().map(|value| ("enum", value));
            for (key, value) in values.chain(listed) {
                let is_safe = value.as_f64().is_none_or(|it| it.abs() <= LARGEST);
                j.check_at(is_safe, Some(name.to_owned()), call.places(), || format!("`{key}: {}`", shown(value)));
                if !is_safe && key.starts_with('m') {
                    j.at_level(Level::Derived);
                }
            }
        }
    }
}

pub(super) fn no_secrets(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(evidence, LIST) {
        let mut found = Vec::new();
        find_headers(&tool["inputSchema"], "", true, &mut found);
        for property in found.iter().map(|header| header.property) {
            let letters: String = property.chars().filter(char::is_ascii_alphanumeric).collect();
            let letters = letters.to_ascii_lowercase();
            let is_secret = letters == "token" || SECRETS.iter().any(|secret| letters.ends_with(secret));
            j.check_at(!is_secret, Some(name.to_owned()), call.places(), || format!("the parameter {property:?}"));
        }
    }
}

/// How deep a schema is, and how many schemas are in it.
pub(super) fn extent(schema: &Value) -> (usize, usize) {
    match schema {
        Value::Object(members) => members
            .values()
            .map(extent)
            .fold((1, 1), |(depth, count), (deep, more)| (depth.max(deep + 1), count + more)),
        Value::Array(items) => {
            items.iter().map(extent).fold((0, 0), |(depth, count), (deep, more)| (depth.max(deep), count + more))
        }
        _ => (0, 0),
    }
}
