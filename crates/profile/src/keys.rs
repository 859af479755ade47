//! The keys of profiles, from `keys.txt`.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::feature::Feature;
use rehearse_client_configs::dialect::KEYS as KEYS_OF_DIALECTS;
use rehearse_document::keys::KeyTable;

pub(crate) static KEYS: LazyLock<KeyTable> = LazyLock::new(|| {
    let features = json!({ "enum": Feature::names() });
    KeyTable::parse(&format!("{}{KEYS_OF_DIALECTS}type feature {features}\n", include_str!("keys.txt")))
});

/// The JSON Schema of a profile.
pub fn schema() -> Json {
    let title = "A profile of rehearse: what a host, a provider or a directory accepts of an MCP server";
    KEYS.schema("profile", json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title }))
}

/// The JSON Schema of a host.
pub fn host_schema() -> Json {
    let title = "A host of rehearse: how it writes its MCP servers, and what it accepts of them";
    KEYS.schema("host", json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title }))
}
