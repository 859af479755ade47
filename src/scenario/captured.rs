//! What templates of a scenario use of what earlier steps capture.

use minijinja::Environment;

use super::{Step, action::ACTIONS};
use crate::config::{Node, Problem, Problems, Value, nearest};

/// Checks that whatever a step uses as `captured.name` is captured by a step before it.
///
/// # Errors
/// A problem for each name that no step before captures.
pub(super) fn check(steps: &[Step], nodes: &[Node]) -> Result<(), Problems> {
    let environment = Environment::new();
    let (mut known, mut problems) = (Vec::new(), Vec::new());
    for (step, node) in steps.iter().zip(nodes) {
        check_step(node, &known, &environment, &mut problems);
        let captures = step.with_parallel().flat_map(|step| &step.capture);
        known.extend(captures.map(|(name, _)| name.as_str()));
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// Only what a step does has templates in it.
fn check_step(step: &Node, known: &[&str], environment: &Environment<'_>, problems: &mut Vec<Problem>) {
    let Some(entry) = step.as_entries().unwrap_or_default().iter().find(|it| ACTIONS.contains(&it.key.as_str())) else {
        return;
    };
    match (entry.key.as_str(), &entry.node.value) {
        // None of the steps at the same time has been captured from.
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

/// The first name in the text that nothing has captured. What is no template has no names.
fn unknown(text: &str, known: &[&str], environment: &Environment<'_>) -> Option<String> {
    let template = environment.template_from_str(text).ok()?;
    let names = template.undeclared_variables(true).into_iter();
    let mut captured: Vec<_> = names.filter_map(|name| Some(name.strip_prefix("captured.")?.to_owned())).collect();
    captured.sort();
    // What follows the name is inside the value.
    let mut captured = captured.into_iter().map(|path| path.split('.').next().unwrap_or_default().to_owned());
    captured.find(|name| !known.contains(&name.as_str()))
}

fn problem(node: &Node, name: &str, known: &[&str]) -> Problem {
    let problem = node.problem(format!("no step before this one captures `{name}`"));
    match (nearest(name, known), known) {
        (Some(near), _) => problem.hint(format!("did you mean `{near}`?")),
        (None, []) => problem.hint(format!("add `capture: {{ {name}: /content/0/text }}` to one")),
        (None, known) => problem.hint(format!("captured are {}", known.join(", "))),
    }
}
