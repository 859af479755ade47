//! The JSON Schema of script files, for editors: draft-07, which the YAML language server of VS Code knows best.
//!
//! It agrees with the reader, as far as a schema can: tests compare its keys with those of the reader, and its results
//! to those of the reader. Every key has a description, which editors show, and examples.

mod build;
mod fault;
mod input_request;
mod item;
mod reply;
mod server;
mod skill;
mod step;
#[cfg(test)]
mod tests;
mod when;

use build::object;
use serde_json::{Map, Value as Json, json};

/// The schema of a script file.
pub fn schema() -> Json {
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Mock script of rehearse",
        "description": "What a mock MCP server offers and how it answers.",
    });
    let root = object(&[], server::keys());
    let definitions = [server::definitions(), item::definitions(), reply::definitions(), step::definitions()];
    let more = [input_request::definitions(), when::definitions(), skill::definitions(), fault::definitions()];
    let definitions: Map<_, _> = definitions.into_iter().chain(more).flatten().collect();
    if let (Json::Object(schema), Json::Object(root)) = (&mut schema, root) {
        schema.extend(root);
        schema.insert("definitions".into(), definitions.into());
    }
    schema
}
