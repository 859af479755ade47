//! Hiding what differs from run to run, by rule and never by luck.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

use crate::config::{Node, Problems};

/// A rule of a scenario file.
#[derive(Debug)]
pub enum Redaction {
    /// The value at a JSON pointer, in which `*` stands for every index or key.
    At { pointer: Vec<String>, with: String },
    /// Every match in every text.
    Matches { regex: Regex, with: String },
}

/// What is hidden in every snapshot: UUIDs, points in time, and the ports of loopback addresses.
static ALWAYS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "[uuid]"),
        (r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", "[time]"),
        (r"\b(127\.0\.0\.1|localhost|\[::1\]):\d{2,5}\b", "$1:[port]"),
    ];
    rules.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

impl Redaction {
    pub(super) fn read(node: &Node) -> Result<Redaction, Problems> {
        let fields = node.fields("a redaction", &["at", "matches", "with"])?;
        let entry = fields.exactly_one(&["at", "matches"])?;
        let with = fields.read("with", |node| Ok(node.str()?.to_owned()))?.unwrap_or_else(|| "[redacted]".into());
        let text = entry.node.str()?;
        if entry.key == "matches" {
            let regex =
                Regex::new(text).map_err(|error| entry.node.problem(format!("not a regular expression: {error}")))?;
            return Ok(Redaction::Matches { regex, with });
        }
        let Some(path) = text.strip_prefix('/') else {
            return Err(entry.node.problem("`at` is a JSON pointer").hint("for example /content/0/text").into());
        };
        let unescape = |key: &str| key.replace("~1", "/").replace("~0", "~");
        Ok(Redaction::At { pointer: path.split('/').map(unescape).collect(), with })
    }
}

/// Applies the rules of a file, then hides known values of the run, then what is always hidden.
pub(super) fn apply(value: &mut Json, rules: &[Redaction], known: &[(String, &str)]) {
    for rule in rules {
        if let Redaction::At { pointer, with } = rule {
            replace_at(value, pointer, with);
        }
    }
    each_text(value, &mut |text| {
        for rule in rules {
            if let Redaction::Matches { regex, with } = rule {
                *text = regex.replace_all(text, with).into_owned();
            }
        }
        for (secret, with) in known {
            *text = text.replace(secret, with);
        }
        for (regex, with) in &*ALWAYS {
            if regex.is_match(text) {
                *text = regex.replace_all(text, *with).into_owned();
            }
        }
    });
}

fn replace_at(value: &mut Json, pointer: &[String], with: &str) {
    let Some((key, rest)) = pointer.split_first() else {
        *value = with.into();
        return;
    };
    match value {
        Json::Array(items) => {
            let index = key.parse::<usize>().ok();
            let chosen = items.iter_mut().enumerate().filter(|(at, _)| key == "*" || Some(*at) == index);
            chosen.for_each(|(_, item)| replace_at(item, rest, with));
        }
        Json::Object(members) => {
            let chosen = members.iter_mut().filter(|(name, _)| key == "*" || *name == key);
            chosen.for_each(|(_, member)| replace_at(member, rest, with));
        }
        _ => {}
    }
}

fn each_text(value: &mut Json, visit: &mut impl FnMut(&mut String)) {
    match value {
        Json::String(text) => visit(text),
        Json::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Json::Object(members) => members.values_mut().for_each(|member| each_text(member, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Source, parse_yaml};

    #[test]
    fn rules_hide_what_they_name_and_nothing_else() {
        let rules =
            parse_yaml(&Source::new("r", "[{ at: /items/*/id, with: '[id]' }, { matches: 'pid \\d+', with: pid N }]"));
        let rules = rules.and_then(|node| node.each(Redaction::read)).expect("valid");
        let mut value = json!({
            "items": [{ "id": 7, "n": 7 }, { "id": "x" }],
            "log": "pid 4711 at 2026-07-28T01:02:03.5Z on http://127.0.0.1:8080/mcp in /tmp/x for 123e4567-e89b-12d3-a456-426614174000",
        });
        apply(&mut value, &rules, &[("/tmp/x".into(), "[folder]")]);
        assert_eq!(
            value,
            json!({
                "items": [{ "id": "[id]", "n": 7 }, { "id": "[id]" }],
                "log": "pid N at [time] on http://127.0.0.1:[port]/mcp in [folder] for [uuid]",
            })
        );
    }

    #[test]
    fn all_builtin_rules_compile() {
        assert_eq!(ALWAYS.len(), 3);
    }
}
