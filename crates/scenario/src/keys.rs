//! The keys of scenarios, from `keys.txt`.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use rehearse_document::keys::KeyTable;

pub(super) static KEYS: LazyLock<KeyTable> = LazyLock::new(|| KeyTable::parse(include_str!("keys.txt")));

/// The JSON Schema of scenario files, for editors.
pub fn schema() -> Json {
    let about = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of rehearse",
        "description": "Steps that a client takes with MCP servers, and what must come back.",
    });
    KEYS.schema("scenario", about)
}

#[cfg(test)]
#[test]
fn every_line_of_the_table_is_read() {
    assert_eq!(KEYS.unread(), [""; 0]);
}
