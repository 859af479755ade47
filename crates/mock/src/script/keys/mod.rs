//! The keys of scripts, from `keys.txt`, with the faults and their options.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::faults::{ALL, FaultInfo};
use crate::log_level;
use rehearse_document::{Source, keys::KeyTable, parse_yaml};

pub(super) static KEYS: LazyLock<KeyTable> = LazyLock::new(|| {
    let (levels, names) = (json!({ "enum": log_level::NAMES }), ALL.iter().map(|info| info.name).collect::<Vec<_>>());
    let words = format!("type logLevel {levels}\ntype faultName {}\n", json!({ "enum": names }));
    let options: String = ALL.iter().map(options).collect();
    let faults: String = ALL.iter().map(fault).collect();
    let text = [include_str!("keys.txt"), &words, &options, "object fault a fault\n", &faults];
    KeyTable::parse(&text.concat())
});

/// The options of a fault, as an object.
fn options(info: &FaultInfo) -> String {
    let example = example(info);
    let option = |(name, meaning): &(&str, &str)| {
        let example = example.get(name).map(Json::to_string).unwrap_or_default();
        format!("  {name} any  {meaning}.  {example}\n")
    };
    let options: String = info.options.iter().map(option).collect();
    format!("object fault-{0} `{0}`\n{options}", info.name)
}

/// A fault, as a key.
fn fault(info: &FaultInfo) -> String {
    let example = example(info);
    let example = if example.is_null() { String::new() } else { example.to_string() };
    format!("  {0}* fault-{0} | text | number | flag | null  {1}.  {example}\n", info.name, info.summary)
}

fn example(info: &FaultInfo) -> Json {
    parse_yaml(&Source::new(info.name, info.example)).map(|node| node.to_json()[info.name].clone()).unwrap_or_default()
}

/// The JSON Schema of script files, for editors: draft-07, which the YAML language server of VS Code knows best.
pub fn schema() -> Json {
    let about = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Mock script of rehearse",
        "description": "What a mock MCP server offers and how it answers.",
    });
    KEYS.schema("script", about)
}
