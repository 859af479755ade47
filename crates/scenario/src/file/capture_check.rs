//! Checks that templates use only values that earlier steps capture.

use minijinja::Environment;

use super::Step;
use crate::keys::KEYS;
use rehearse_document::{Node, Problem, Problems, Value, nearest};

/// Checks that every `captured.name` is captured by an earlier step.
///
/// # Errors
/// A problem for each name that no earlier step captures.
pub(crate) fn check(steps: &[Step], nodes: &[Node]) -> Result<(), Problems> {
    let environment = Environment::new();
    let (mut known, mut problems) = (Vec::new(), Vec::new());
    for (step, node) in steps.iter().zip(nodes) {
        check_step(node, &known, &environment, &mut problems);
        let captures = step.with_parallel().flat_map(|step| &step.capture);
        known.extend(captures.map(|(name, _)| name.as_str()));
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// Only the action of a step has templates.
fn check_step(step: &Node, known: &[&str], environment: &Environment<'_>, problems: &mut Vec<Problem>) {
    let actions = KEYS.choices("step");
    let Some(entry) = step.as_entries().unwrap_or_default().iter().find(|it| actions.contains(&it.key.as_str())) else {
        return;
    };
    match (entry.key.as_str(), &entry.node.value) {
        // Parallel steps cannot use each other's captures.
        ("parallel", Value::Sequence(steps)) => {
            steps.iter().for_each(|step| check_step(step, known, environment, problems));
        }
        _ => check_texts(&entry.node, known, environment, problems),
    }
}

fn check_texts(node: &Node, known: &[&str], environment: &Environment<'_>, problems: &mut Vec<Problem>) {
    match &node.value {
        Value::String(text) => {
            problems.extend(unknown(text, known, environment).map(|name| problem(node, &name, known)))
        }
        Value::Sequence(items) => items.iter().for_each(|item| check_texts(item, known, environment, problems)),
        Value::Mapping(entries) => {
            entries.iter().for_each(|entry| check_texts(&entry.node, known, environment, problems));
        }
        _ => {}
    }
}

/// The first name in a template that no step captures.
fn unknown(text: &str, known: &[&str], environment: &Environment<'_>) -> Option<String> {
    let template = environment.template_from_str(text).ok()?;
    let names = template.undeclared_variables(true).into_iter();
    let mut captured: Vec<_> = names.filter_map(|name| Some(name.strip_prefix("captured.")?.to_owned())).collect();
    captured.sort();
    // The rest of the path is inside the captured value.
    let mut captured = captured.into_iter().map(|path| path.split('.').next().unwrap_or_default().to_owned());
    captured.find(|name| !known.contains(&name.as_str()))
}

fn problem(node: &Node, name: &str, known: &[&str]) -> Problem {
    let problem = node.problem(format!("no earlier step captures `{name}`"));
    match (nearest(name, known), known) {
        (Some(near), _) => problem.hint(format!("did you mean `{near}`?")),
        (None, []) => problem.hint(format!("add `capture: {{ {name}: /content/0/text }}` to an earlier step")),
        (None, known) => problem.hint(format!("earlier steps capture {}", known.join(", "))),
    }
}
