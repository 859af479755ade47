//! A tree as text: JSON or YAML, with two spaces for each level, or TOML.

use std::fmt::Write;

use rehearse_document::{Entry, Node, Value};

/// Where a list of plain values is broken into lines.
const WIDTH: usize = 100;

/// A longer key is no simple key (YAML 1.2.2, 7.4.2), and escapes make it longer.
const LONGEST_KEY: usize = 1000;

pub(super) fn json(root: &Node) -> String {
    let mut out = String::new();
    write_json(root, 0, &mut out);
    out.push('\n');
    out
}

fn write_json(node: &Node, depth: usize, out: &mut String) {
    match &node.value {
        Value::Sequence(items) if !items.is_empty() => {
            if items.iter().all(is_scalar) {
                let line: Vec<_> = items.iter().map(Node::to_json_text).collect();
                if line.iter().map(|item| item.len() + 2).sum::<usize>() + 2 * depth <= WIDTH {
                    let _ = write!(out, "[{}]", line.join(", "));
                    return;
                }
            }
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "\n" } else { ",\n" });
                indent(depth + 1, out);
                write_json(item, depth + 1, out);
            }
            out.push('\n');
            indent(depth, out);
            out.push(']');
        }
        Value::Mapping(entries) if !entries.is_empty() => {
            out.push('{');
            for (index, Entry { key, node, .. }) in entries.iter().enumerate() {
                out.push_str(if index == 0 { "\n" } else { ",\n" });
                indent(depth + 1, out);
                let _ = write!(out, "{}: ", serde_json::Value::from(key.as_str()));
                write_json(node, depth + 1, out);
            }
            out.push('\n');
            indent(depth, out);
            out.push('}');
        }
        _ => out.push_str(&node.to_json_text()),
    }
}

pub(super) fn yaml(root: &Node) -> String {
    let mut out = String::new();
    match is_scalar(root) {
        true => out.push_str(&scalar(root)),
        false => write_yaml(root, 0, true, &mut out),
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// A list or mapping in lines of its own. The first line may have been begun.
fn write_yaml(node: &Node, depth: usize, mut is_begun: bool, out: &mut String) {
    let mut begin = |out: &mut String| {
        if !std::mem::take(&mut is_begun) {
            indent(depth, out);
        }
    };
    match &node.value {
        Value::Sequence(items) => {
            for item in items {
                begin(out);
                out.push_str("- ");
                match is_scalar(item) {
                    true => {
                        out.push_str(&scalar(item));
                        out.push('\n');
                    }
                    false => write_yaml(item, depth + 1, true, out),
                }
            }
        }
        Value::Mapping(entries) => {
            for Entry { key, node, .. } in entries {
                begin(out);
                let key = text(key);
                if key.len() > LONGEST_KEY {
                    let _ = writeln!(out, "? {key}");
                    indent(depth, out);
                } else {
                    out.push_str(&key);
                }
                out.push(':');
                match is_scalar(node) {
                    true => {
                        let _ = writeln!(out, " {}", scalar(node));
                    }
                    false => {
                        out.push('\n');
                        write_yaml(node, depth + 1, false, out);
                    }
                }
            }
        }
        _ => {}
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// TOML: a table with a header for each object of objects, and inline tables in them.
pub(super) fn toml(root: &Node) -> String {
    let mut out = String::new();
    write_toml(root, &mut Vec::new(), &mut out);
    out
}

fn write_toml<'n>(node: &'n Node, path: &mut Vec<&'n str>, out: &mut String) {
    let entries = node.as_entries().unwrap_or_default();
    let is_table = |entry: &&Entry| path.len() < 2 && matches!(entry.node.value, Value::Mapping(_));
    let values: Vec<_> = entries.iter().filter(|entry| !is_table(entry) && !entry.node.is_null()).collect();
    if path.len() == 2 || !path.is_empty() && !values.is_empty() {
        let keys: Vec<_> = path.iter().map(|key| toml_key(key)).collect();
        let _ = writeln!(out, "{}[{}]", if out.is_empty() { "" } else { "\n" }, keys.join("."));
    }
    for Entry { key, node, .. } in values {
        let _ = writeln!(out, "{} = {}", toml_key(key), toml_value(node));
    }
    for entry in entries.iter().filter(is_table) {
        let mut inner = path.clone();
        inner.push(&entry.key);
        write_toml(&entry.node, &mut inner, out);
    }
}

fn toml_key(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

/// A JSON string is a basic string of TOML.
fn toml_value(node: &Node) -> String {
    match &node.value {
        Value::Sequence(items) => {
            let items: Vec<_> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Mapping(entries) => {
            let entries = entries.iter().filter(|entry| !entry.node.is_null());
            let entries: Vec<_> =
                entries.map(|it| format!("{} = {}", toml_key(&it.key), toml_value(&it.node))).collect();
            if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
        }
        _ => node.to_json_text(),
    }
}

/// What fits into a line: everything but lists and mappings with something in them.
fn is_scalar(node: &Node) -> bool {
    match &node.value {
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(entries) => entries.is_empty(),
        _ => true,
    }
}

fn scalar(node: &Node) -> String {
    match &node.value {
        Value::String(value) => text(value),
        _ => node.to_json_text(),
    }
}

/// A text without quotes where no reader of any version of YAML takes it for something else.
fn text(value: &str) -> String {
    if is_plain(value) {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            _ if is_invisible(character) => {
                let _ = match u32::from(character) {
                    code @ ..=0xffff => write!(quoted, "\\u{code:04X}"),
                    code => write!(quoted, "\\U{code:08X}"),
                };
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// What YAML does not have raw (YAML 1.2.2, 5.1), what breaks lines in YAML 1.1, and invisible characters.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || (character.is_whitespace() && character != ' ')
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn is_plain(value: &str) -> bool {
    let begins = value.trim_start_matches('-');
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=' | '@' | '%');
    let is_safe_between = |c: char| is_safe(c) || matches!(c, ' ' | ':' | '$' | '{' | '}' | '(' | ')' | ';' | '?');
    value.len() - begins.len() <= 2
        && begins.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '/' | '$'))
        && value.ends_with(|c: char| is_safe(c) || c == '}')
        && value.chars().all(is_safe_between)
        && !value.contains(": ")
        && !is_word_of_yaml(value)
}

/// Words that YAML 1.1 or 1.2 takes for something else than a text.
fn is_word_of_yaml(value: &str) -> bool {
    let word = value.to_ascii_lowercase();
    matches!(word.as_str(), "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use rehearse_document::{Source, json as json_reader, parse_yaml};

    fn node(text: &str) -> Node {
        json_reader::parse(&Source::new("t", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).root
    }

    #[test]
    fn json_has_two_blanks_for_each_level_and_short_lists_in_a_line() {
        let written = json(&node(r#"{"a":{"args":["-y","x"],"none":[],"env":{},"n":1.50},"b":[{"c":null}]}"#));
        assert_eq!(
            written,
            "{\n  \"a\": {\n    \"args\": [\"-y\", \"x\"],\n    \"none\": [],\n    \"env\": {},\n    \"n\": 1.50\n  },\n  \
             \"b\": [\n    {\n      \"c\": null\n    }\n  ]\n}\n"
        );
        let long = json(&node(&format!("[\"{}\", \"b\"]", "a".repeat(100))));
        assert_eq!(long.lines().count(), 4, "{long}");
    }

    #[test]
    fn yaml_quotes_only_what_could_be_taken_for_something_else() {
        let written = yaml(&node(
            r##"{"servers":{"a b":{"command":"npx","args":["-y","@x/y","--port=80","80","true","No","a: b","a #b",""," x","-","~","é\n"],
               "env":{"TOKEN":"${TOKEN}"},"list":[{"k":1,"l":[[]]}],"none":{}}}}"##,
        ));
        assert_eq!(
            written,
            "servers:\n  a b:\n    command: npx\n    args:\n      - -y\n      - \"@x/y\"\n      - --port=80\n      - \"80\"\n      \
             - \"true\"\n      - \"No\"\n      - \"a: b\"\n      - \"a #b\"\n      - \"\"\n      - \" x\"\n      - \"-\"\n      - \"~\"\n      \
             - \"é\\n\"\n    env:\n      TOKEN: ${TOKEN}\n    list:\n      - k: 1\n        l:\n          - []\n    none: {}\n"
        );
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "\\PC{0,12}",
            "[-a-z0-9:{}\\[\\],&*!|>'\"#%@`~<=?$\\\\\n\t\r ]{0,12}",
            prop::sample::select("null|~|1e3|0x1F|.5|2026-07-28|1:30|<<|=|---|...|- a".split('|').collect::<Vec<_>>())
                .prop_map(str::to_owned),
            prop::collection::vec(any::<char>(), 0..6).prop_map(|chars| chars.into_iter().collect()),
        ]
    }

    fn trees() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            texts().prop_map(serde_json::Value::from),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            Just(serde_json::Value::Null),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                prop::collection::btree_map(texts(), inner, 0..6).prop_map(|map| {
                    // Our reader merges `<<` even where it is in quotes.
                    serde_json::Value::Object(map.into_iter().filter(|(key, _)| key != "<<").collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_files_read_back(tree in trees()) {
            let root = node(&tree.to_string());
            prop_assert_eq!(node(&json(&root)).to_json(), tree.clone());
            let written = yaml(&root);
            let read = parse_yaml(&Source::new("t", written.as_str()));
            prop_assert_eq!(read.map(|node| node.to_json()), Ok(tree), "{}", written);
        }
    }

    #[test]
    fn a_key_may_be_long() {
        let tree = serde_json::json!({ "é".repeat(2000): { "a": 1 }, "b".repeat(3000): "x" });
        let written = yaml(&node(&tree.to_string()));
        assert_eq!(parse_yaml(&Source::new("t", written)).map(|node| node.to_json()), Ok(tree));
    }
}
