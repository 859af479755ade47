//! Prompts and their arguments.

use serde_json::Value as Json;

use super::{
    Changes, Subject,
    items::{Indexed, compare_members, compare_names, matched, name, subject},
};
use rehearse_protocol::List;
use rehearse_report::diff::Class;

pub(super) fn compare(changes: &mut Changes, old: &[Json], new: &[Json]) {
    let matched = matched(old, new, List::Prompts.key());
    compare_names(changes, List::Prompts, &matched, "requests for it fail");
    for (old, new) in matched.both {
        if old.1 == new.1 {
            continue;
        }
        let subject = subject(List::Prompts, Some(old), Some(new));
        compare_members(changes, "prompt", &subject, (old.1, new.1), &["name", "arguments"]);
        compare_arguments(changes, &subject, (old.1, new.1));
    }
}

fn compare_arguments(changes: &mut Changes, subject: &Subject, (old, new): (&Json, &Json)) {
    let arguments = |prompt: &Json| prompt.get("arguments").and_then(Json::as_array).cloned().unwrap_or_default();
    let (old, new) = (arguments(old), arguments(new));
    let matched = matched(&old, &new, "name");
    let at = |before: Option<Indexed<'_>>, after: Option<Indexed<'_>>| {
        let pointer = |side: &Option<String>, item: Option<Indexed<'_>>| {
            Some(format!("{}/arguments/{}", side.as_ref()?, item?.0))
        };
        Subject { name: subject.name.clone(), old: pointer(&subject.old, before), new: pointer(&subject.new, after) }
    };
    for removed in &matched.removed {
        let text = format!("The argument `{}` is gone: requests that have it may fail.", argument(removed.1));
        changes.push(Class::Breaking, "prompt.argument-removed", at(Some(*removed), None), text);
    }
    for added in &matched.added {
        let (class, why) = match is_required(added.1) {
            true => (Class::Breaking, " and required: requests without it fail"),
            false => (Class::Addition, ""),
        };
        let text = format!("The argument `{}` is new{why}.", argument(added.1));
        changes.push(class, "prompt.argument-added", at(None, Some(*added)), text);
    }
    for (old, new) in &matched.both {
        let subject = at(Some(*old), Some(*new));
        match (is_required(old.1), is_required(new.1)) {
            (false, true) => {
                let text = format!("The argument `{}` is required now: requests without it fail.", argument(new.1));
                changes.push(Class::Breaking, "prompt.argument-required", subject.clone(), text);
            }
            (true, false) => {
                let text = format!("The argument `{}` is optional now.", argument(new.1));
                changes.push(Class::Addition, "prompt.argument-optional", subject.clone(), text);
            }
            _ => {}
        }
        compare_members(changes, "prompt.argument", &subject, (old.1, new.1), &["name", "required"]);
    }
}

fn argument(item: &Json) -> &str {
    name(List::Prompts, item)
}

fn is_required(argument: &Json) -> bool {
    argument.get("required") == Some(&Json::Bool(true))
}
