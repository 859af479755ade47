//! Writes JSON as YAML that people like to edit.

use serde_json::{Map, Value};

/// The longest array or object on one line.
const LINE: usize = 80;

/// The text of an object, one key a line.
pub fn to_text(members: &Map<String, Value>) -> String {
    let mut out = String::new();
    mapping(&mut out, members, "");
    out
}

fn mapping(out: &mut String, members: &Map<String, Value>, indent: &str) {
    for (number, (key, value)) in members.iter().enumerate() {
        if number > 0 {
            out.push_str(indent);
        }
        out.push_str(&scalar(key));
        out.push(':');
        nested(out, value, indent);
    }
}

/// A value after `key:`, with its newline.
fn nested(out: &mut String, value: &Value, indent: &str) {
    if let Some(line) = flow(value) {
        out.push_str(&format!(" {line}\n"));
        return;
    }
    match value {
        Value::Object(members) => {
            let indent = format!("{indent}  ");
            out.push_str(&format!("\n{indent}"));
            mapping(out, members, &indent);
        }
        Value::Array(items) => {
            out.push('\n');
            sequence(out, items, &format!("{indent}  "));
        }
        _ => {}
    }
}

fn sequence(out: &mut String, items: &[Value], indent: &str) {
    for item in items {
        out.push_str(&format!("{indent}-"));
        match (flow(item), item) {
            (Some(line), _) => out.push_str(&format!(" {line}\n")),
            (None, Value::Object(members)) => {
                out.push(' ');
                mapping(out, members, &format!("{indent}  "));
            }
            (None, _) => nested(out, item, indent),
        }
    }
}

/// The value on one line, if it is short or has no parts.
fn flow(value: &Value) -> Option<String> {
    let text = match value {
        Value::Object(members) if !members.is_empty() => {
            let parts = members.iter().map(|(key, value)| Some(format!("{}: {}", scalar(key), flow(value)?)));
            format!("{{ {} }}", parts.collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Array(items) if !items.is_empty() => {
            format!("[{}]", items.iter().map(flow).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::String(text) => return Some(scalar(text)),
        other => return Some(other.to_string()),
    };
    (text.chars().count() <= LINE).then_some(text)
}

/// A string without quotes where every reader takes it for the same string.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ' '))
        && !text.ends_with(' ')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*text.to_ascii_lowercase());
    if is_plain {
        return text.to_owned();
    }
    // A JSON string is one of YAML, but for characters that YAML does not print.
    let escaped = |c: char| match c {
        '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    };
    Value::from(text).to_string().chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Source, parse_yaml};

    #[test]
    fn what_is_written_reads_back() {
        let long = "x".repeat(90);
        let value = json!({
            "server": { "name": "a b", "version": "1.0" },
            "yes": ["no", "on", null, true, 1.5, "", " x ", "a: b", "# c", "é\n\t\u{7f}", "{{ x }}"],
            "tools": [{ "name": "t", "long": &long, "deep": [[&long, [1]], {}, []] }, &long],
            "odd key:": { "more": { "and": { "more": &long } } },
        });
        let text = to_text(value.as_object().expect("an object"));
        let read = parse_yaml(&Source::new("x", text.clone())).unwrap_or_else(|error| panic!("{error:?}: {text}"));
        assert_eq!(serde_json::from_str::<Value>(&read.to_json_text()).expect("JSON"), value, "{text}");
        assert!(text.starts_with("server: { name: a b, version: \"1.0\" }\n"), "{text}");
    }
}
