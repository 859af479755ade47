//! The JSON Schema of mock scripts, against the scripts and the documentation of this repository.

use std::{collections::BTreeSet, path::Path};

use mcp_rehearsal::{
    document::{Source, parse_yaml},
    mock::script::schema,
};
use serde_json::Value as Json;

#[test]
fn the_shipped_scripts_are_valid() {
    let validator = jsonschema::draft7::new(&schema()).expect("a schema");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mock-servers");
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder).expect("mock-servers") {
        let path = entry.expect("an entry").path();
        let source = Source::read(&path).expect("a script");
        let script = parse_yaml(&source).unwrap_or_else(|problems| panic!("{problems:?}")).to_json();
        let errors: Vec<_> =
            validator.iter_errors(&script).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        scripts += 1;
    }
    assert!(scripts > 20);
}

/// The words that a part of the schema has: names of properties, and constants.
fn words(schema: &Json, found: &mut BTreeSet<String>) {
    match schema {
        Json::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("properties", Json::Object(properties)) => found.extend(properties.keys().cloned()),
                    ("enum", Json::Array(values)) => {
                        found.extend(values.iter().filter_map(|value| Some(value.as_str()?.to_owned())));
                    }
                    ("const", Json::String(value)) => drop(found.insert(value.clone())),
                    _ => {}
                }
                words(member, found);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| words(item, found)),
        _ => {}
    }
}

#[test]
fn every_word_of_a_schema_is_in_a_file_or_the_documentation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (schema, least, folders, pages) in [
        (
            schema(),
            200,
            &["mock-servers", "crates/check/acts", "crates/check/acts/usual"][..],
            &["mock-scripts", "mock-steps", "mock-items", "mock-server", "acts"][..],
        ),
        (
            mcp_rehearsal::scenario::schema(),
            150,
            &["scenarios"],
            &["scenarios", "scenario-steps", "running-scenarios", "evals", "final-answer"],
        ),
        (mcp_rehearsal::llm::model::scripted::schema(), 30, &[], &["models", "mock-steps"]),
        (
            mcp_rehearsal::profile::schema(),
            80,
            &["crates/profile/profiles", "crates/client-configs/hosts"],
            &["profiles"],
        ),
    ] {
        let files = folders.iter().flat_map(|name| std::fs::read_dir(root.join(name)).expect("a folder"));
        let files = files.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
        let mut shown: String = files.map(|path| std::fs::read_to_string(path).expect("a text")).collect();
        for page in pages {
            let page = std::fs::read_to_string(root.join(format!("docs/{page}.md"))).expect("a page");
            // Every other part is code.
            page.split('`').skip(1).step_by(2).for_each(|code| shown.extend([code, " "]));
        }
        let shown: BTreeSet<_> =
            shown.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))).collect();
        let mut all = BTreeSet::new();
        words(&schema, &mut all);
        let missing: Vec<_> = all.iter().filter(|word| !shown.contains(word.as_str())).collect();
        assert!(all.len() > least && missing.is_empty(), "{} words, without an example: {missing:?}", all.len());
    }
}
