//! The schemas of tools, and the headers in them.

use std::collections::HashSet;

use rehearse_document::json_schema::{self, Subschema, subschemas};
use rehearse_protocol::Version;
use serde_json::Value;

use super::common::{items, shown};
use super::query::elements;
use crate::{Evidence, Judgement, Level};

const LIST: &str = "tools/list";
pub(super) const HEADER: &str = "x-mcp-header";
const DIALECTS: [&str; 5] =
    ["2020-12/schema", "2019-09/schema", "draft-07/schema", "draft-06/schema", "draft-04/schema"];
/// The largest integer that every JSON reader keeps.
const LARGEST: f64 = 9_007_199_254_740_991.0;
/// Names of parameters that are secrets.
const SECRETS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secretkey",
    "secretaccesskey",
    "apikey",
    "apitoken",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "oauthtoken",
    "refreshtoken",
    "privatekey",
];

pub(super) fn schemas(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value) -> bool) {
    for (tool, name, call) in items(e, LIST) {
        let schema = match tool.get(key) {
            Some(schema) => schema,
            None if key == "inputSchema" => &Value::Null,
            None => continue,
        };
        if !j.has_found(name) {
            j.check_at(holds(schema), Some(name), call.places(), || shown(schema));
        }
    }
}

pub(super) fn is_known(dialect: &Value) -> bool {
    dialect.as_str().is_some_and(|it| DIALECTS.iter().any(|known| it.trim_end_matches('#').ends_with(known)))
}

/// Checks that the schemas are valid, and that what should be a regular expression in them is one (JSON Schema
/// 2020-12, Validation, 6.3.3).
pub(super) fn valid_schemas(e: &Evidence<'_>, j: &mut Judgement, key: &str) {
    schemas(e, j, key, is_valid_schema);
    for (tool, name, call) in items(e, LIST).filter(|(tool, ..)| tool.get(key).is_some_and(is_valid_schema)) {
        let mut patterns = Vec::new();
        subschemas(&tool[key], &mut |it| {
            patterns.extend(it.json.get("pattern").and_then(Value::as_str));
            let named = it.json.get("patternProperties").and_then(Value::as_object);
            patterns.extend(named.into_iter().flatten().map(|(pattern, _)| pattern.as_str()));
        });
        let broken = patterns.into_iter().find(|it| !json_schema::is_pattern(it));
        let Some(pattern) = broken.filter(|_| !j.has_found(name)) else { continue };
        j.check_at(false, Some(name), call.places(), || format!("the pattern {pattern:?}"));
        j.at_level_if(e.version >= Version::V2025_11_25, Level::Should);
    }
}

/// Whether a schema is valid in its dialect; one of an unknown dialect is not judged.
fn is_valid_schema(schema: &Value) -> bool {
    schema.get("$schema").is_some_and(|dialect| !is_known(dialect)) || json_schema::is_valid(schema)
}

/// Checks every member of this name in the input schemas.
pub(super) fn with_member(e: &Evidence<'_>, j: &mut Judgement, key: &str, holds: impl Fn(&Value, &Value) -> bool) {
    for (tool, name, call) in items(e, LIST) {
        let schema = &tool["inputSchema"];
        let mut found = Vec::new();
        subschemas(schema, &mut |it| found.extend(it.json.get(key)));
        for value in found {
            j.check_at(holds(schema, value), Some(name), call.places(), || shown(value));
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

/// The schemas with an `x-mcp-header`.
pub(super) fn headers_in(schema: &Value) -> Vec<Subschema<'_>> {
    let mut found = Vec::new();
    subschemas(schema, &mut |it| found.extend(it.json.get(HEADER).is_some().then_some(it)));
    found
}

pub(super) fn headers(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value, Subschema<'_>) -> bool) {
    for (tool, name, call) in items(e, LIST) {
        for it in headers_in(&tool["inputSchema"]) {
            let header = &it.json[HEADER];
            j.check_at(holds(header, it), Some(name), call.places(), || format!("`{HEADER}: {}`", shown(header)));
        }
    }
}

pub(super) fn is_token(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it))
}

pub(super) fn unique_headers(e: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(e, LIST) {
        let (found, mut seen) = (headers_in(&tool["inputSchema"]), HashSet::new());
        for header in found.iter().filter_map(|it| it.json[HEADER].as_str()) {
            let is_new = seen.insert(header.to_ascii_lowercase());
            j.check_at(is_new, Some(name), call.places(), || format!("the header {header:?} twice"));
        }
    }
}

/// Whether the type is one that may have a header. One that is optional by its type is only doubtful.
pub(super) fn primitive_headers(e: &Evidence<'_>, j: &mut Judgement) {
    let is_primitive = |kind: &Value| ["integer", "string", "boolean"].iter().any(|it| kind == it);
    for (tool, name, call) in items(e, LIST) {
        for it in headers_in(&tool["inputSchema"]) {
            let kind = &it.json["type"];
            j.check_at(is_primitive(kind), Some(name), call.places(), || format!("`type: {}`", shown(kind)));
            let kinds = kind.as_array().map(Vec::as_slice).unwrap_or_default();
            j.at_level_if(
                kinds.iter().any(is_primitive) && kinds.iter().all(|it| is_primitive(it) || it == "null"),
                Level::Derived,
            );
        }
    }
}

/// The values that the schema names are safe integers; bounds beyond them only allow unsafe ones.
pub(super) fn safe_integers(e: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(e, LIST) {
        let found = headers_in(&tool["inputSchema"]);
        for schema in found.iter().map(|it| it.json).filter(|schema| schema["type"] == "integer") {
            let values =
                ["const", "default", "minimum", "maximum"].iter().filter_map(|key| Some((*key, schema.get(key)?)));
            let listed = elements(&schema["enum"]).map(|value| ("enum", value));
            for (key, value) in values.chain(listed) {
                let is_safe = value.as_f64().is_none_or(|it| it.abs() <= LARGEST);
                j.check_at(is_safe, Some(name), call.places(), || format!("`{key}: {}`", shown(value)));
                j.at_level_if(!is_safe && key.starts_with('m'), Level::Derived);
            }
        }
    }
}

/// Whether a parameter is named like a secret.
pub(super) fn is_secret_name(property: &str) -> bool {
    let letters: String = property.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    letters == "token" || SECRETS.iter().any(|secret| letters.ends_with(secret))
}

pub(super) fn no_secrets(e: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(e, LIST) {
        for Subschema { property, .. } in headers_in(&tool["inputSchema"]) {
            j.check_at(!is_secret_name(property), Some(name), call.places(), || format!("the parameter {property:?}"));
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
