//! Redaction: replacing values in snapshots that differ from run to run.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

use crate::keys::KEYS;
use rehearse_document::{Node, Problems, Source};

/// A redaction of a scenario file.
#[derive(Debug)]
pub struct Redaction {
    /// What to replace.
    pub rule: RedactionRule,
    /// The line in the file.
    pub line: usize,
}

/// What a redaction replaces.
#[derive(Debug)]
pub enum RedactionRule {
    /// The value at a JSON pointer.
    At {
        /// The parts of the pointer; `*` matches every index and key, and `**` any number of parts.
        pointer: Vec<String>,
        /// The replacement.
        with: String,
    },
    /// Every match of a regular expression in every string.
    Matches {
        /// The regular expression.
        regex: Regex,
        /// The replacement.
        with: String,
    },
}

/// Replaced in every snapshot: UUIDs, points in time, and the ports of loopback addresses.
static ALWAYS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", "[uuid]"),
        // RFC 3339 and SQL.
        (r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}([.,]\d+)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?", "[time]"),
        // RFC 2822 and HTTP.
        (r"\b(\w{3}, )?\d{1,2} \w{3} \d{4} \d{2}:\d{2}:\d{2}( ([A-Z]{1,4}|[+-]\d{4}))?\b", "[time]"),
        // ctime and `date`.
        (r"\b\w{3} \w{3} [ \d]\d \d{2}:\d{2}:\d{2}( [A-Z]{1,4})? \d{4}\b", "[time]"),
        // Epoch seconds and milliseconds after a key, in text.
        (
            r#"\b((?:\w*(?:(?i:time|timestamp|date|epoch|_at|_ts)|[a-z]At)|(?i:created|updated|modified|expires))["']?\s*[:=]\s*)(\d{13}|\d{10})(\.\d+)?\b"#,
            "$1[time]",
        ),
        (r"(\b127\.0\.0\.1|\b0\.0\.0\.0|\blocalhost|\[::1?\]):\d{2,5}\b", "$1:[port]"),
    ];
    rules.into_iter().filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with))).collect()
});

/// The names of members that hold a time.
static TIME_KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i:time|timestamp|date|epoch|(^|_)(at|ts|now))$|[a-z]At$|^(?i:created|updated|modified|expires)$")
        .ok()
});

/// Whether this is a time since 1970 in seconds or milliseconds, between 2001 and 2100.
fn is_epoch_time(value: &Json) -> bool {
    const SECONDS: std::ops::Range<f64> = 1e9..4.1e9;
    value.as_f64().is_some_and(|number| SECONDS.contains(&number) || SECONDS.contains(&(number / 1000.0)))
}

impl Redaction {
    pub(crate) fn read(node: &Node, source: &Source) -> Result<Redaction, Problems> {
        let line = source.position(node.span.start).0;
        let fields = KEYS.fields(node, "redaction")?;
        let entry = fields.exactly_one(&KEYS.choices("redaction"))?;
        let with = fields.read("with", |node| Ok(node.str()?.to_owned()))?.unwrap_or_else(|| "[redacted]".into());
        let text = entry.node.str()?;
        if entry.key == "matches" {
            let regex =
                Regex::new(text).map_err(|error| entry.node.problem(format!("not a regular expression: {error}")))?;
            return Ok(Redaction { rule: RedactionRule::Matches { regex, with }, line });
        }
        let Some(path) = text.strip_prefix('/') else {
            return Err(entry.node.problem("`at` must be a JSON pointer").hint("for example /content/0/text").into());
        };
        if path.rsplit('/').next() == Some("**") {
            return Err(entry.node.problem("`**` needs a part after it").hint("for example /**/id").into());
        }
        let unescape = |key: &str| key.replace("~1", "/").replace("~0", "~");
        Ok(Redaction { rule: RedactionRule::At { pointer: path.split('/').map(unescape).collect(), with }, line })
    }
}

/// Whether each rule of a file has matched, in the order of the rules.
pub(crate) type UsedRules = Vec<bool>;

/// Applies the rules of a file with a JSON pointer.
pub(crate) fn apply_at(result: &mut Json, rules: &[Redaction], used: &mut UsedRules) {
    for (Redaction { rule, .. }, used) in rules.iter().zip(used) {
        if let RedactionRule::At { pointer, with } = rule {
            *used |= replace_at(result, pointer, with);
        }
    }
}

/// A value of this run that no snapshot may contain.
#[derive(Debug)]
pub(crate) enum RunValue {
    /// A folder, and everything below it.
    Folder(String, &'static str),
    /// A string anywhere.
    Secret(String, String),
}

/// Applies the rules of a file with a regular expression, then replaces the values of this run, then the built-in rules.
fn apply(value: &mut Json, rules: &[Redaction], known: &[RunValue], used: &mut UsedRules) {
    replace_epoch_times(value);
    visit_strings(value, &mut |text| {
        for (Redaction { rule, .. }, used) in rules.iter().zip(&mut *used) {
            if let RedactionRule::Matches { regex, with } = rule
                && regex.is_match(text)
            {
                *used = true;
                *text = regex.replace_all(text, with).into_owned();
            }
        }
        for known in known {
            match known {
                RunValue::Folder(folder, with) => replace_folder(text, folder, with),
                RunValue::Secret(secret, with) => *text = text.replace(secret, with),
            }
        }
        for (regex, with) in &*ALWAYS {
            if regex.is_match(text) {
                *text = regex.replace_all(text, *with).into_owned();
            }
        }
    });
}

/// The text of a snapshot: the rest of the rules is applied, and keys are sorted.
pub(crate) fn snapshot_text(mut view: Json, rules: &[Redaction], known: &[RunValue], used: &mut UsedRules) -> String {
    apply(&mut view, rules, known, used);
    view.sort_all_objects();
    serde_json::to_string_pretty(&view).unwrap_or_default()
}

/// Replaces the values at a pointer. Returns whether there was one.
fn replace_at(value: &mut Json, pointer: &[String], with: &str) -> bool {
    let Some((key, rest)) = pointer.split_first() else {
        *value = with.into();
        return true;
    };
    let mut replaced = false;
    if key == "**" {
        replaced |= replace_at(value, rest, with);
        match value {
            Json::Array(items) => items.iter_mut().for_each(|item| replaced |= replace_at(item, pointer, with)),
            Json::Object(members) => {
                members.values_mut().for_each(|member| replaced |= replace_at(member, pointer, with));
            }
            _ => {}
        }
        return replaced;
    }
    match value {
        Json::Array(items) => {
            let index = key.parse::<usize>().ok();
            let chosen = items.iter_mut().enumerate().filter(|(at, _)| key == "*" || Some(*at) == index);
            chosen.for_each(|(_, item)| replaced |= replace_at(item, rest, with));
        }
        Json::Object(members) => {
            let chosen = members.iter_mut().filter(|(name, _)| key == "*" || *name == key);
            chosen.for_each(|(_, member)| replaced |= replace_at(member, rest, with));
        }
        _ => {}
    }
    replaced
}

/// Replaces a path where it is a whole path or the start of one, not a part of a longer name.
fn replace_folder(text: &mut String, folder: &str, with: &str) {
    let mut from = 0;
    while let Some(found) = text[from..].find(folder) {
        let (start, end) = (from + found, from + found + folder.len());
        let ends = !text[end..].starts_with(|c: char| c.is_alphanumeric() || "-_.".contains(c));
        if ends {
            text.replace_range(start..end, with);
            from = start + with.len();
        } else {
            from = end;
        }
    }
}

/// Replaces numbers that are times since 1970 in members whose names say so.
fn replace_epoch_times(value: &mut Json) {
    match value {
        Json::Array(items) => items.iter_mut().for_each(replace_epoch_times),
        Json::Object(members) => {
            for (name, member) in members {
                match TIME_KEY.as_ref().is_some_and(|key| key.is_match(name)) && is_epoch_time(member) {
                    true => *member = "[time]".into(),
                    false => replace_epoch_times(member),
                }
            }
        }
        _ => {}
    }
}

/// Visits every string, including the names of members.
fn visit_strings(value: &mut Json, visit: &mut impl FnMut(&mut String)) {
    match value {
        Json::String(text) => visit(text),
        Json::Array(items) => items.iter_mut().for_each(|item| visit_strings(item, visit)),
        Json::Object(members) => {
            let visited = std::mem::take(members).into_iter().map(|(mut name, mut member)| {
                visit(&mut name);
                visit_strings(&mut member, visit);
                (name, member)
            });
            *members = visited.collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use rehearse_document::parse_yaml;

    #[test]
    fn rules_hide_what_they_name_and_nothing_else() {
        let rules = Source::new(
            "r",
            "[{ at: /items/*/id, with: '[id]' }, { matches: 'pid \\d+', with: pid N },\n{ at: /nothing }]",
        );
        let rules = parse_yaml(&rules).and_then(|node| node.each(|node| Redaction::read(node, &rules))).expect("valid");
        let mut value = json!({
            "items": [{ "id": 7, "n": 7 }, { "id": "x" }],
            "log": "pid 4711 at 2026-07-28T01:02:03.5Z on http://[::1]:8080/mcp in /tmp/x/y, not /tmp/xy, for ID_123e4567-e89b-12d3-a456-426614174000",
            "key sk-secret": "Bearer sk-secret",
        });
        let known =
            [RunValue::Folder("/tmp/x".into(), "[folder]"), RunValue::Secret("sk-secret".into(), "[env KEY]".into())];
        let mut used = vec![false; 3];
        apply_at(&mut value, &rules, &mut used);
        apply(&mut value, &rules, &known, &mut used);
        assert_eq!((used, rules[2].line), (vec![true, true, false], 2));
        assert_eq!(
            value,
            json!({
                "items": [{ "id": "[id]", "n": 7 }, { "id": "[id]" }],
                "log": "pid N at [time] on http://[::1]:[port]/mcp in [folder]/y, not /tmp/xy, for ID_[uuid]",
                "key [env KEY]": "Bearer [env KEY]",
            })
        );
    }

    #[test]
    fn two_stars_stand_for_any_depth() {
        let redacted = |rule: &str, mut value: Json| {
            let source = Source::new("r", rule);
            let rules = parse_yaml(&source).and_then(|node| node.each(|node| Redaction::read(node, &source)));
            let rules = rules.map_err(|problems| problems.in_source(&source).to_string())?;
            let mut used = vec![false];
            apply_at(&mut value, &rules, &mut used);
            Ok::<_, String>((value, used[0]))
        };
        let value = || json!({ "id": 1, "a": { "id": 2, "b": [{ "id": { "id": 3 } }, [{ "c": 4 }]] } });
        let everywhere = json!({ "id": "x", "a": { "id": "x", "b": [{ "id": "x" }, [{ "c": 4 }]] } });
        assert_eq!(redacted("[{ at: /**/id, with: x }]", value()), Ok((everywhere, true)));
        let below = json!({ "id": 1, "a": { "id": 2, "b": [{ "id": { "id": 3 } }, [{ "c": "x" }]] } });
        assert_eq!(redacted("[{ at: /a/**/b/**/c, with: x }]", value()), Ok((below, true)));
        assert_eq!(redacted("[{ at: /b/**/id }]", value()), Ok((value(), false)));
        let error = redacted("[{ at: /a/** }]", value()).expect_err("no part after it");
        assert!(error.contains("`**` needs a part after it"), "{error}");
    }

    #[test]
    fn points_in_time_are_replaced_in_every_form() {
        let mut value = json!({
            "iso": "2026-11-23T16:34:48.123+01:00", "sql": "2026-11-23 16:34:48", "http": "Mon, 23 Nov 2026 16:34:48 GMT",
            "mail": "at 23 Nov 2026 16:34:48 +0100.", "ctime": "Mon Nov 23 16:34:48 2026", "text": "{\"created_at\": 1795451688, \"createdAt\": 1795451688.25, \"updated\": 1795451688123, \"format\": 1795451688}",
            "timestamp": 1_795_451_688, "createdAt": 1_795_451_688_123_u64, "updated": 1_795_451_688.5,
            "phone": 1_795_451_688, "time": 12, "day": "2026-11-23", "number": "1795451688", "format": 1_795_451_688,
        });
        apply(&mut value, &[], &[], &mut Vec::new());
        assert_eq!(
            value,
            json!({
                "iso": "[time]", "sql": "[time]", "http": "[time]", "mail": "at [time].", "ctime": "[time]",
                "text": "{\"created_at\": [time], \"createdAt\": [time], \"updated\": [time], \"format\": 1795451688}",
                "timestamp": "[time]", "createdAt": "[time]", "updated": "[time]",
                "phone": 1_795_451_688, "time": 12, "day": "2026-11-23", "number": "1795451688", "format": 1_795_451_688,
            })
        );
    }

    #[test]
    fn all_builtin_rules_compile() {
        assert_eq!(ALWAYS.len(), 6);
        assert!(TIME_KEY.is_some());
    }
}
