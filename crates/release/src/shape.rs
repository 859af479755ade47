//! The keys and types of an object.

use rehearse_client_configs::codes;
use rehearse_document::{Entry, Node, Span, Value, nearest};
use rehearse_report::findings::Finding;

/// How many keys are named in a hint.
const MOST_NAMED: usize = 10;

/// What a value is.
pub(super) enum Kind {
    Any,
    Text,
    Flag,
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    Object(&'static Shape),
    /// A list of such values.
    List(&'static Kind),
    /// An object with any keys and such values.
    Map(&'static Kind),
}

/// The keys of an object. One that is required has a `*` behind its name.
pub(super) struct Shape {
    pub(super) keys: &'static [(&'static str, Kind)],
    /// Whether unknown keys are rejected.
    pub(super) is_closed: bool,
}

impl Shape {
    /// Checks an object.
    pub(super) fn check(&self, node: &Node, findings: &mut Vec<Finding>) {
        let Some(entries) = node.as_entries() else { return };
        for entry in entries {
            match self.keys.iter().find(|(key, _)| key.trim_end_matches('*') == entry.key) {
                Some((_, kind)) => kind.check(&entry.key, &entry.node, findings),
                None => findings.push(self.unknown(entry)),
            }
        }
        let required = self.keys.iter().filter_map(|(key, _)| key.strip_suffix('*'));
        for key in required.filter(|key| node.get(key).is_none()) {
            findings.push(missing(node, key));
        }
    }

    fn unknown(&self, entry: &Entry) -> Finding {
        let known: Vec<_> = self.keys.iter().map(|(key, _)| key.trim_end_matches('*')).collect();
        // `registry_type` is the old name of `registryType`.
        let plain = |key: &str| key.replace('_', "").to_ascii_lowercase();
        let old = known.iter().copied().find(|key| plain(key) == plain(&entry.key));
        let near = old.or_else(|| nearest(&entry.key, &known));
        let code = match (self.is_closed, near) {
            (true, _) => &codes::KEY_REJECTED,
            (false, Some(_)) => &codes::UNKNOWN_KEY,
            (false, None) => &codes::EXTRA_KEY,
        };
        let finding = code.at(entry.key_span, format!("unknown key `{}`", entry.key));
        finding.hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.len() <= MOST_NAMED => format!("known are {}", known.join(", ")),
            None => "the format has no such key: remove it".to_owned(),
        })
    }
}

/// A finding about a key that is required.
pub(super) fn missing(node: &Node, key: &str) -> Finding {
    let start = node.span.start;
    codes::MISSING.at(Span { start, end: start }, format!("`{key}` is missing")).hint(format!("add `{key}`"))
}

impl Kind {
    fn check(&self, key: &str, node: &Node, findings: &mut Vec<Finding>) {
        let expected = match (self, &node.value) {
            (Kind::Word(words), Value::String(text)) if !words.contains(&text.as_str()) => {
                let finding = codes::RELEASE_VALUE.at(node.span, format!("`{key}` cannot be `{text}`"));
                return findings.push(finding.hint(format!("one of {}", words.join(", "))));
            }
            (Kind::Any, _)
            | (Kind::Text | Kind::Word(_), Value::String(_))
            | (Kind::Flag, Value::Bool(_))
            | (Kind::Number, Value::Number(_)) => return,
            (Kind::Object(shape), Value::Mapping(_)) => return shape.check(node, findings),
            (Kind::List(kind), Value::Sequence(items)) => {
                return items.iter().for_each(|item| kind.check(key, item, findings));
            }
            (Kind::Map(kind), Value::Mapping(entries)) => {
                return entries.iter().for_each(|entry| kind.check(&entry.key, &entry.node, findings));
            }
            (Kind::Text | Kind::Word(_), _) => "a text",
            (Kind::Flag, _) => "true or false",
            (Kind::Number, _) => "a number",
            (Kind::List(_), _) => "a list",
            (Kind::Object(_) | Kind::Map(_), _) => "an object",
        };
        let finding = codes::VALUE_TYPE.at(node.span, format!("`{key}` must be {expected}, not {}", node.describe()));
        findings.push(finding.hint(format!("write {expected}")));
    }
}
