//! What Visual Studio Code asks its user for: `inputs`.

use std::collections::HashSet;

use super::Subject;
use crate::config::{
    Form, Node,
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
    let inputs = subject.root.get("inputs").and_then(|inputs| inputs.items().ok()).unwrap_or_default();
    let id = |input: &Node| input.get("id").and_then(|id| id.str().ok().map(str::to_owned));
    let known: Vec<String> = inputs.iter().filter_map(id).collect();
    let used = references_to(&known, subject, findings);
    for input in inputs {
        match input.get("id").map(|id| (id, id.str())) {
            Some((node, Ok(id))) if !used.contains(id) => {
                let message = format!("nothing uses the input `{id}`");
                findings.push(
                    codes::INPUT_UNUSED
                        .at(node.span, message)
                        .hint(format!("refer to it by ${{input:{id}}}, or remove it")),
                );
            }
            Some((_, Ok(_))) => {}
            Some((node, Err(_))) => {
                findings.push(
                    codes::VALUE_TYPE.at(node.span, "the `id` of an input must be a text").hint("put it in quotes"),
                );
            }
            None => findings.push(codes::MISSING.at(input.span, "an input needs an `id`").hint("references name it")),
        }
    }
}

/// The inputs that servers refer to. Those that there are not are told.
fn references_to(known: &[String], subject: &Subject<'_>, findings: &mut Vec<Finding>) -> HashSet<String> {
    let names: HashSet<&str> = known.iter().map(String::as_str).collect();
    // To look through more for what was meant takes too long.
    let likely: Vec<&str> = known.iter().map(String::as_str).take(MOST_LIKELY).collect();
    let mut used = HashSet::new();
    for server in &subject.config.servers {
        for text in server.texts() {
            for reference in references(&text.at.value).filter(|reference| reference.form == Form::Input) {
                let name = reference.name;
                used.insert(name.to_owned());
                if names.contains(name) {
                    continue;
                }
                let place = subject.part(text, reference.range.clone());
                let message = format!("there is no input `{name}`, so the server does not start");
                let hint = match nearest(name, &likely) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("add {{\"id\": \"{name}\", \"type\": \"promptString\", …}} to `inputs`"),
                };
                findings.push(codes::INPUT_UNKNOWN.at(place, message).hint(hint).about(&server.name.value));
            }
        }
    }
    used
}
