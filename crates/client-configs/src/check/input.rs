//! What Visual Studio Code asks its user for: `inputs`.

use std::collections::{HashMap, HashSet};

use super::CheckedConfig;
use crate::{codes, dialect::RootKeys};
use rehearse_document::{Form, Node, Value, nearest, references};
use rehearse_report::findings::Finding;

/// The keys that an input of a type must have, and those that it may have besides.
const TYPES: &[(&str, &[&str], &[&str])] = &[
    ("promptString", &["description"], &["default", "password"]),
    ("pickString", &["description", "options"], &["default"]),
    ("command", &["command"], &["args"]),
];

pub(super) fn check(checked: &CheckedConfig<'_>, findings: &mut Vec<Finding>) {
    let (RootKeys::Known(keys) | RootKeys::Section(keys)) = checked.dialect().root_keys;
    if !keys.contains(&"inputs") {
        return;
    }
    let inputs = match checked.root.get("inputs").map(|node| (node, node.as_items())) {
        Some((_, Some(items))) => items,
        Some((node, None)) if !node.is_null() => {
            let message = format!("`inputs` must be an array, found {}", node.kind());
            findings.push(codes::VALUE_TYPE.at(node.span, message).hint("write [{ \"id\": \"…\", … }]"));
            return;
        }
        _ => &[],
    };
    let known: Vec<_> = inputs.iter().filter_map(|input| input.get("id")?.as_str()).collect();
    let used = check_references(&known, checked, findings);
    let mut ids = HashMap::new();
    for input in inputs {
        let Some(node) = input.get("id") else {
            let hint = "add \"id\": \"…\", which references name";
            findings.push(codes::MISSING.at(input.span, "an input needs an `id`").hint(hint));
            continue;
        };
        let Some(id) = node.as_str() else {
            let finding = codes::VALUE_TYPE.at(node.span, "the `id` of an input must be a string");
            findings.push(finding.hint("write it in quotes"));
            continue;
        };
        if let Some(other) = ids.insert(id, node.span) {
            let (line, column) = checked.source.position(other.start);
            let message = format!("`{id}` is an input already at {line}:{column}: only this one is used");
            findings.push(codes::DUPLICATE_KEY.at(node.span, message).hint("keep one of them, or rename it"));
        }
        match used.contains(id) {
            true => check_input(checked, id, input, findings),
            false => {
                let finding = codes::INPUT_UNUSED.at(node.span, format!("nothing uses the input `{id}`"));
                findings.push(finding.hint(format!("refer to it with ${{input:{id}}}, or remove it")));
            }
        }
    }
}

/// Checks an input that a server needs: without it, VS Code does not start the server.
fn check_input(checked: &CheckedConfig<'_>, id: &str, input: &Node, findings: &mut Vec<Finding>) {
    let program = checked.dialect().program;
    let words: Vec<_> = TYPES.iter().map(|(word, ..)| *word).collect();
    let kind = input.get("type").map(|kind| (kind.span, kind.as_str().unwrap_or_default()));
    let span = kind.map_or(input.span, |(span, _)| span);
    let known = TYPES.iter().find(|(word, ..)| kind.is_some_and(|(_, kind)| kind == *word));
    let Some((_, required, optional)) = known else {
        let finding = codes::INPUT.at(span, format!("the input `{id}` has no `type` that {program} knows"));
        findings.push(finding.hint(format!("one of {}", words.join(", "))));
        return;
    };
    for key in required.iter().filter(|key| input.get(key).is_none()) {
        let message = format!("the input `{id}` needs `{key}`");
        findings.push(codes::INPUT.at(span, message).hint(format!("add \"{key}\": …")));
    }
    let wrong = |node: &Node, key: &str, expected: &str| {
        let message = format!("`{key}` of the input `{id}` must be {expected}, found {}", node.kind());
        codes::VALUE_TYPE.at(node.span, message).hint("write it in quotes")
    };
    for key in required.iter().chain(*optional).filter(|key| !matches!(**key, "options" | "password" | "args")) {
        let Some(node) = input.get(key).filter(|node| node.as_str().is_none()) else { continue };
        let is_shown = *key == "default" && !matches!(node.value, Value::Sequence(_) | Value::Mapping(_));
        findings.extend((!is_shown).then(|| wrong(node, key, "a string")));
    }
    if let Some(node) = input.get("password").filter(|node| optional.contains(&"password") && node.as_bool().is_none())
    {
        let message = format!("`password` of the input `{id}` must be true or false");
        findings.push(codes::IGNORED.at(node.span, message).hint("write it without quotes"));
    }
    let known: Vec<_> = ["id", "type"].iter().chain(*required).chain(*optional).copied().collect();
    for entry in input.as_entries().unwrap_or_default().iter().filter(|it| !known.contains(&&*it.key)) {
        let message = format!("unknown key `{}`", entry.key);
        findings.push(match nearest(&entry.key, &known) {
            Some(near) => codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("did you mean `{near}`?")),
            None => codes::EXTRA_KEY.at(entry.key_span, message).hint(format!("{program} ignores it")),
        });
    }
}

/// The inputs that servers refer to. Those that do not exist are reported.
fn check_references<'s>(known: &[&str], checked: &CheckedConfig<'s>, findings: &mut Vec<Finding>) -> HashSet<&'s str> {
    let mut used = HashSet::new();
    for server in checked.servers() {
        for text in server.texts() {
            for reference in references(&text.at.value).filter(|reference| reference.form == Form::Input) {
                let name = reference.name;
                used.insert(name);
                if known.contains(&name) {
                    continue;
                }
                let message = format!("there is no input `{name}`, so the server does not start");
                let finding = codes::INPUT_UNKNOWN.at(checked.part(text, reference.range.clone()), message);
                let finding = finding.about(&*server.name.value);
                findings.push(match nearest(name, known) {
                    Some(near) => finding.hint(format!("did you mean `{near}`?")),
                    None => finding.hint("add it to `inputs`: { \"id\": \"…\", \"type\": \"promptString\", … }"),
                });
            }
        }
    }
    used
}
