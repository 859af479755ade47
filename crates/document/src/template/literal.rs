//! Values that are no templates, as values of a file in which strings are.

use serde_json::{Map, Value};

/// How a template begins.
const OPENINGS: [&str; 3] = ["{{", "{%", "{#"];

/// Strings in scripts and scenarios are templates: what looks like one is written as its text.
pub fn without_templates(value: Value) -> Value {
    match value {
        Value::String(text) if OPENINGS.iter().any(|opening| text.contains(opening)) => literal(&text).into(),
        Value::Array(items) => items.into_iter().map(without_templates).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, without_templates(value))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn literal(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        match OPENINGS.iter().find(|opening| from.starts_with(**opening)) {
            Some(opening) => {
                out.push_str(&format!("{{{{ '{opening}' }}}}"));
                rest = &from[opening.len()..];
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_looks_like_a_template_is_written_as_a_text() {
        assert_eq!(
            without_templates(json!({ "a": ["{{7*7}} {% {#", "{"] })),
            json!({ "a": ["{{ '{{' }}7*7}} {{ '{%' }} {{ '{#' }}", "{"] })
        );
    }
}
