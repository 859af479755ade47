//! What Visual Studio Code asks its user for: `inputs`.

use std::collections::{HashMap, HashSet};

use super::{Subject, reference::unclosed_input};
use crate::config::{
    Entry, Form, Node, Value,
    dialect::RootKeys,
    finding::{Finding, codes},
    nearest, references,
};

const MOST_LIKELY: usize = 20;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let dialect = subject.dialect();
    let (RootKeys::Known(keys) | RootKeys::Section(keys)) = dialect.root_keys;
    if !keys.contains(&"inputs") {
        return;
    }
    let misplaced = misplaced(subject);
    let node = subject.root.get("inputs").or(misplaced.map(|entry| &entry.node));
    let inputs = match node.map(|node| (node, node.as_items())) {
        Some((_, Some(items))) => items,
        Some((node, None)) if !node.is_null() => {
            let message = format!("`inputs` must be a list, found {}", node.kind());
            findings.push(codes::VALUE_TYPE.at(node.span, message).hint("write [{ \"id\": \"…\", … }]"));
            // What servers ask for may well be in it.
            return;
        }
        _ => &[],
    };
    let known: Vec<_> = inputs.iter().filter_map(|input| id(input)?.node.as_str()).collect();
    let (used, meant) = references_to(&known, subject, findings);
    // Without the inputs no server starts that asks for one.
    if let Some(entry) = misplaced.filter(|_| known.iter().any(|id| used.contains(id))) {
        let told = findings.iter_mut().find(|it| it.problem.span == entry.key_span && it.code == &codes::UNKNOWN_KEY);
        told.into_iter().for_each(|finding| finding.code = &codes::INPUT_UNKNOWN);
    }
    let mut ids = HashMap::new();
    for input in inputs {
        if let Some((node, Some(id))) = input.get("id").map(|id| (id, id.as_str())) {
            if let Some(other) = ids.insert(id, node.span) {
                let (line, column) = subject.source.position(other.start);
                let message = format!("`{id}` is an input already at {line}:{column}: only this one counts");
                findings.push(codes::DUPLICATE_KEY.at(node.span, message).hint("keep one of them, or rename it"));
            }
            if used.contains(id) {
                asked(subject, id, input, findings);
            }
        }
        match input.get("id").map(|id| (id, id.as_str())) {
            Some((node, Some(id))) if !used.contains(id) && !meant.contains(id) => {
                let message = format!("nothing uses the input `{id}`");
                findings.push(
                    codes::INPUT_UNUSED
                        .at(node.span, message)
                        .hint(format!("refer to it by ${{input:{id}}}, or remove it")),
                );
            }
            Some((_, Some(_))) => {}
            Some((node, None)) => {
                findings.push(
                    codes::VALUE_TYPE.at(node.span, "the `id` of an input must be a text").hint("put it in quotes"),
                );
            }
            None => findings.push(match id(input) {
                Some(entry) => codes::MISSING.at(entry.key_span, "an input needs an `id`").hint("did you mean `id`?"),
                None => {
                    let hint = "add \"id\": \"…\", by which references name it";
                    codes::MISSING.at(input.span, "an input needs an `id`").hint(hint)
                }
            }),
        }
    }
}

/// The inputs where nobody looks for them: under a slip of their name, or among the servers.
fn misplaced<'s>(subject: &Subject<'s>) -> Option<&'s Entry> {
    let root = subject.root;
    let entries = |node: &'s Node| node.as_entries().unwrap_or_default().iter();
    let is_list = |entry: &&Entry| entry.node.as_items().is_some();
    let is_slip = |entry: &&Entry| nearest(&entry.key, &["inputs"]).is_some();
    let servers = subject.dialect().servers(root);
    let inside = servers.and_then(|servers| entries(servers).find(|entry| entry.key == "inputs"));
    let found = entries(root).filter(is_list).find(is_slip).or(inside.filter(is_list));
    found.filter(|_| root.get("inputs").is_none())
}

/// The name of an input, also under another key that may be meant for it.
fn id(input: &Node) -> Option<&Entry> {
    let entries = input.as_entries().unwrap_or_default();
    let is_meant = |entry: &&Entry| ["name", "key"].contains(&&*entry.key) || nearest(&entry.key, &["id"]).is_some();
    entries.iter().find(|entry| entry.key == "id").or_else(|| entries.iter().find(is_meant))
}

/// What an input of a kind must have, and what it may have besides.
const KINDS: &[(&str, &[&str], &[&str])] = &[
    ("promptString", &["description"], &["default", "password"]),
    ("pickString", &["description", "options"], &["default"]),
    ("command", &["command"], &["args"]),
];

/// What is wrong with an input that a server needs: VS Code does not start the server then.
fn asked(subject: &Subject<'_>, id: &str, input: &Node, findings: &mut Vec<Finding>) {
    let words = KINDS.iter().map(|(word, ..)| *word).collect::<Vec<_>>();
    let kind = input.get("type").map(|kind| (kind.span, kind.as_str().unwrap_or_default()));
    let place = kind.map_or(input.span, |(span, _)| span);
    let known = KINDS.iter().find(|(word, ..)| kind.is_some_and(|(_, kind)| kind == *word));
    let near = kind.and_then(|(_, kind)| nearest(kind, &words));
    if known.is_none() {
        let message = format!("the input `{id}` has no `type` that {} knows", subject.dialect().program);
        findings.push(codes::INPUT.at(place, message).hint(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of {}", words.join(", ")),
        }));
    }
    // What else is wrong is told by the kind that is meant.
    let meant = known.or_else(|| KINDS.iter().find(|(word, ..)| near == Some(*word)));
    let Some((_, required, allowed)) = meant else { return };
    for key in required.iter().filter(|key| input.get(key).is_none()) {
        let message = format!("the input `{id}` needs `{key}`");
        findings.push(codes::INPUT.at(place, message).hint(format!("add \"{key}\": …")));
    }
    let texts = required.iter().chain(*allowed).filter(|key| !matches!(**key, "options" | "password" | "args"));
    let given = texts.filter_map(|key| Some((*key, input.get(key)?)));
    // Nobody looks at what a default is, as long as it can be shown as a text.
    let is_shown = |node: &Node| !matches!(node.value, Value::Sequence(_) | Value::Mapping(_));
    for (key, node) in given.filter(|(key, node)| node.as_str().is_none() && !(*key == "default" && is_shown(node))) {
        let message = format!("`{key}` of the input `{id}` must be a text, found {}", node.kind());
        findings.push(codes::VALUE_TYPE.at(node.span, message).hint("write it in quotes"));
    }
    if let Some(node) = input.get("password").filter(|node| allowed.contains(&"password") && node.as_bool().is_none()) {
        let taken = match &node.value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Number(text) => text.parse() != Ok(0.0),
            _ => true,
        };
        let message = format!(
            "`password` of the input `{id}` must be true or false: {} takes it for {taken}",
            subject.dialect().program
        );
        findings.push(codes::IGNORED.at(node.span, message).hint("write true or false without quotes"));
    }
    if let Some(node) = input.get("options").filter(|_| required.contains(&"options")) {
        options(id, node, findings);
    }
    let known: Vec<_> = ["id", "type"].iter().chain(*required).chain(*allowed).copied().collect();
    for entry in input.as_entries().unwrap_or_default().iter().filter(|it| !known.contains(&&*it.key)) {
        let message = format!("{} does not know `{}` in such an input", subject.dialect().program, entry.key);
        findings.push(match nearest(&entry.key, &known) {
            Some(near) => codes::UNKNOWN_KEY.at(entry.key_span, message).hint(format!("did you mean `{near}`?")),
            None => codes::EXTRA_KEY.at(entry.key_span, message).hint("it is passed over"),
        });
    }
}

/// What somebody can choose from: texts, or objects with a text as `value`.
fn options(id: &str, node: &Node, findings: &mut Vec<Finding>) {
    let Some(items) = node.as_items() else {
        let message = format!("`options` of the input `{id}` must be a list, found {}", node.kind());
        findings.push(codes::VALUE_TYPE.at(node.span, message).hint("write [\"one\", \"two\"]"));
        return;
    };
    for item in items.iter().filter(|item| item.as_str().is_none()) {
        let finding = match item.get("value") {
            Some(value) if value.as_str().is_some() => continue,
            Some(value) => {
                let message = format!("the `value` of an option must be a text, found {}", value.kind());
                codes::VALUE_TYPE.at(value.span, message)
            }
            None => {
                let message = format!("an option must be a text or have a `value`, found {}", item.kind());
                codes::VALUE_TYPE.at(item.span, message)
            }
        };
        findings.push(finding.hint("write it in quotes"));
    }
}

/// The inputs that servers refer to, and those that they may mean. Those that there are not are told.
fn references_to<'s>(
    known: &[&'s str],
    subject: &Subject<'s>,
    findings: &mut Vec<Finding>,
) -> (HashSet<&'s str>, HashSet<&'s str>) {
    let names: HashSet<_> = known.iter().copied().collect();
    // To look through more for what was meant takes too long.
    let likely = &known[..known.len().min(MOST_LIKELY)];
    let (mut used, mut meant) = (HashSet::new(), HashSet::new());
    for server in subject.servers() {
        for text in server.texts() {
            meant.extend(unclosed_input(&text.at.value));
            for reference in references(&text.at.value) {
                let name = reference.name;
                if reference.form != Form::Input {
                    let kind = name.split_once(['.', ':']).filter(|(kind, _)| ["input", "inputs"].contains(kind));
                    meant.extend(kind.map(|(_, id)| id));
                    continue;
                }
                used.insert(name);
                if names.contains(name) {
                    continue;
                }
                let place = subject.part(text, reference.range.clone());
                let message = format!("there is no input `{name}`, so the server does not start");
                let near = likely.iter().copied().find(|id| *id == name.trim()).or_else(|| nearest(name, likely));
                meant.extend(near);
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add {{\"id\": \"{name}\", \"type\": \"promptString\", …}} to `inputs`"),
                };
                findings.push(codes::INPUT_UNKNOWN.at(place, message).hint(hint).about(&*server.name.value));
            }
        }
    }
    (used, meant)
}
