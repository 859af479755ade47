//! The JSON Schemas: of results, which their types give, and of files, whose keys are in `keys.txt`.

use std::sync::LazyLock;

use rehearse_document::keys::KeyTable;
use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, RestrictFormats},
};
use serde_json::{Value as Json, json};

use crate::{bench::BenchResult, check::CheckResult, diff::DiffResult, fuzz::FuzzResult, json::Judged};

pub(crate) static KEYS: LazyLock<KeyTable> = LazyLock::new(|| KeyTable::parse(include_str!("keys.txt")));

/// The accepted failures of `rehearse check --baseline`.
pub fn baseline() -> Json {
    of_file("baseline", "Accepted failures of `rehearse check --baseline`")
}

/// A surface file, as `rehearse surface` writes it.
pub fn surface() -> Json {
    of_file("surface", "A surface file, as `rehearse surface` writes it")
}

/// A line of the journal of a mock.
pub fn journal() -> Json {
    of_file("journal", "A line of `rehearse mock --journal FILE`, or an entry of `GET /journal`")
}

/// A line of a trace file.
pub fn trace() -> Json {
    of_file("trace", "A line of a trace file of `rehearse`")
}

/// The report of `rehearse run --format json`.
pub fn run() -> Json {
    of_result::<Judged<'_>>("run")
}

/// The report of `rehearse check --format json`.
pub fn check() -> Json {
    of_result::<CheckResult>("check")
}

/// The report of `rehearse bench … --format json`.
pub fn bench() -> Json {
    of_result::<BenchResult>("bench …")
}

/// The report of `rehearse diff --format json`.
pub fn diff() -> Json {
    of_result::<DiffResult>("diff")
}

/// The report of `rehearse fuzz --format json`.
pub fn fuzz() -> Json {
    of_result::<FuzzResult>("fuzz")
}

fn of_file(name: &str, title: &str) -> Json {
    KEYS.schema(name, about(title))
}

fn about(title: &str) -> Json {
    json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title })
}

fn of_result<T: JsonSchema>(command: &str) -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(RestrictFormats::default());
    let generator = settings.with_transform(RecursiveTransform(leave_out_null)).into_generator();
    let mut schema = about(&format!("The report of `rehearse {command} --format json`"));
    for (name, value) in generator.into_root_schema_for::<T>().as_object().into_iter().flatten() {
        if schema.get(name).is_none() {
            schema[name] = value.clone();
        }
    }
    schema
}

/// What may be absent is never null.
fn leave_out_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| required.as_array().is_some_and(|all| all.iter().any(|it| it == name.as_str()));
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut).into_iter().flatten();
    for (_, property) in properties.filter(|(name, _)| !is_required(name)) {
        if let Some(types) = property.get_mut("type").filter(|types| types.is_array()) {
            *types = types[0].take();
        }
        if let Some(Json::Array(kinds)) = property.as_object_mut().and_then(|it| it.remove("anyOf")) {
            property["$ref"] = kinds[0]["$ref"].clone();
        }
    }
}

#[cfg(test)]
#[test]
fn every_line_of_the_keys_is_read() {
    assert_eq!(KEYS.unread(), [""; 0]);
}
