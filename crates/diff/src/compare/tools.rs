//! Tools: their schemas, and whether they can be tasks.

use serde_json::Value as Json;

use super::{
    Changes, Pair, Subject,
    items::{Indexed, compare_members, compare_names, matched, subject},
    pair,
};
use crate::schema::{self, Direction};
use rehearse_protocol::List;
use rehearse_report::diff::Class;

/// A schema that allows everything, as that of a tool without one.
static ANY: Json = Json::Bool(true);

pub(super) fn compare(changes: &mut Changes, old: &[Json], new: &[Json]) {
    let matched = matched(old, new, List::Tools.key());
    compare_names(changes, List::Tools, &matched, "calls of it fail");
    for (old, new) in matched.both {
        compare_tool(changes, old, new);
    }
}

fn compare_tool(changes: &mut Changes, old: Indexed<'_>, new: Indexed<'_>) {
    if old.1 == new.1 {
        return;
    }
    let subject = subject(List::Tools, Some(old), Some(new));
    let known = ["name", "inputSchema", "outputSchema", "execution"];
    compare_members(changes, "tool", &subject, (old.1, new.1), &known);
    let input = pair(old.1, new.1, "inputSchema");
    let at = subject.member("inputSchema", input);
    match input {
        (Some(_), None) => {
            let text = "The tool has no `inputSchema` any more, which every tool needs: clients refuse it.";
            changes.push(Class::Breaking, "input.removed", at, text);
        }
        _ => compare_schema(changes, "input", Direction::Input, at, input),
    }
    let output = pair(old.1, new.1, "outputSchema");
    let at = subject.member("outputSchema", output);
    match output {
        (None, Some(_)) => {
            let text = "Results have a schema now, and structured content.";
            changes.push(Class::Addition, "output.added", at, text);
        }
        (Some(_), None) => {
            let text = "Results have no schema any more: readers of structured content may fail.";
            changes.push(Class::Breaking, "output.removed", at, text);
        }
        _ => compare_schema(changes, "output", Direction::Output, at, output),
    }
    compare_task_support(changes, &subject, (old.1, new.1));
}

fn compare_schema(changes: &mut Changes, of: &str, direction: Direction, subject: Subject, sides: Pair<'_>) {
    let (old, new) = (sides.0.unwrap_or(&ANY), sides.1.unwrap_or(&ANY));
    for change in schema::compare(old, new, direction) {
        let at = |side: &Option<String>, pointer: Option<String>| Some(format!("{}{}", side.as_ref()?, pointer?));
        let Subject { name, old, new } = &subject;
        let place = Subject { name: name.clone(), old: at(old, change.old), new: at(new, change.new) };
        changes.push(change.class, &format!("{of}.{}", change.rule), place, change.message);
        if let Some(pushed) = changes.found.last_mut() {
            (pushed.is_possible, pushed.instance) = (change.is_possible, change.instance);
        }
    }
}

/// Whether a tool can be, or must be, called as a task (2025-11-25, Tasks: Tool-Level Negotiation).
fn compare_task_support(changes: &mut Changes, subject: &Subject, (old, new): (&Json, &Json)) {
    let support = |tool: &Json| {
        let support = tool.pointer("/execution/taskSupport").and_then(Json::as_str);
        support.unwrap_or("forbidden").to_owned()
    };
    let (before, after) = (support(old), support(new));
    let (class, why) = match (&*before, &*after) {
        (one, other) if one == other => return,
        (_, "required") => (Class::Breaking, "a call without a task fails"),
        (_, "forbidden") => (Class::Breaking, "a call as a task fails"),
        _ => (Class::Addition, "it can be called both ways"),
    };
    let execution = pair(old, new, "execution");
    let text = format!("`taskSupport` is {after} now, {before} before: {why}.");
    changes.push(class, "tool.task-support", subject.member("execution", execution), text);
}
