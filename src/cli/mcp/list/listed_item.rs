//! A listed resource, resource template or prompt, for people.

use serde_json::{Map, Value};

use crate::cli::style::printable;
use rehearse_protocol::List;
use rehearse_report::text::printable_lines;

/// The lines of an item of a list: its name and details, its description, the arguments of a prompt.
pub(crate) fn item_text(list: List, members: &Map<String, Value>) -> String {
    let some = |key| Some(word(members, key)).filter(|word| !word.is_empty());
    let size = members.get("size").and_then(Value::as_u64).map(|size| format!("{size} bytes"));
    let beside = match list {
        List::Resources | List::ResourceTemplates => [some("name"), some("mimeType"), size.as_deref()],
        List::Tools | List::Prompts => [None; 3],
    };
    let beside: Vec<_> = beside.iter().flatten().map(|text| printable(text)).collect();
    let beside = if beside.is_empty() { String::new() } else { format!(" ({})", beside.join(", ")) };
    let mut text = format!("- `{}`{beside}\n", printable(word(members, list.key())));
    if let Some(description) = some("description") {
        text.extend(printable_lines(description).map(|line| format!("  {line}\n")));
    }
    for argument in members.get("arguments").and_then(Value::as_array).into_iter().flatten() {
        let required = if argument["required"] == true { "required" } else { "optional" };
        let about = argument["description"].as_str().map(|about| format!(": {}", printable(about))).unwrap_or_default();
        let name = printable(argument["name"].as_str().unwrap_or_default());
        text.push_str(&format!("  - `{name}` ({required}){about}\n"));
    }
    text
}

/// A string member, or an empty string.
fn word<'m>(members: &'m Map<String, Value>, key: &str) -> &'m str {
    members.get(key).and_then(Value::as_str).unwrap_or_default()
}
