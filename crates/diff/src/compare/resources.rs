//! Resources and resource templates.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{
    Changes, Subject,
    items::{Indexed, Matched, compare_members, compare_names, compare_text, matched, subject},
    pair, quoted,
};
use rehearse_document::uri_template::UriTemplate;
use rehearse_protocol::List;
use rehearse_report::diff::Class;

pub(super) fn compare(changes: &mut Changes, old: &[Json], new: &[Json]) {
    let matched = matched(old, new, List::Resources.key());
    compare_names(changes, List::Resources, &matched, "readers of it fail");
    for (old, new) in matched.both {
        compare_resource(changes, List::Resources, old, new);
    }
}

/// Templates with the same name are one template, whose text has changed.
pub(super) fn compare_templates(changes: &mut Changes, old: &[Json], new: &[Json]) {
    let Matched { removed, added, both, repeated } = matched(old, new, List::ResourceTemplates.key());
    for (old, new) in both {
        compare_resource(changes, List::ResourceTemplates, old, new);
    }
    let named = |(_, item): &Indexed<'_>| item.get("name").and_then(Json::as_str).map(ToOwned::to_owned);
    let (mut gone, mut fresh) = (Vec::new(), added);
    for old in removed {
        let same = fresh.iter().position(|new| named(new).is_some() && named(new) == named(&old));
        match same.map(|index| fresh.remove(index)) {
            Some(new) => compare_template(changes, old, new),
            None => gone.push(old),
        }
    }
    let matched = Matched { removed: gone, added: fresh, both: Vec::new(), repeated };
    compare_names(changes, List::ResourceTemplates, &matched, "readers that expand it fail");
}

fn compare_resource(changes: &mut Changes, list: List, old: Indexed<'_>, new: Indexed<'_>) {
    if old.1 == new.1 {
        return;
    }
    let (subject, noun) = (subject(list, Some(old), Some(new)), list.noun());
    let known = [list.key(), "name", "mimeType", "size"];
    compare_members(changes, noun, &subject, (old.1, new.1), &known);
    let names = pair(old.1, new.1, "name");
    compare_text(changes, &format!("{noun}.name"), &subject, "name", names);
    let size = pair(old.1, new.1, "size");
    if size.0 != size.1 {
        changes.push(Class::Cosmetic, &format!("{noun}.size"), subject.member("size", size), "`size` differs.");
    }
    let types = pair(old.1, new.1, "mimeType");
    let (class, text) = match types {
        (old, new) if old == new => return,
        (Some(old), Some(new)) => {
            let text = format!("The media type is {} now, {} before: a reader may fail.", quoted(new), quoted(old));
            (Class::Breaking, text)
        }
        (None, _) => (Class::Addition, "The media type is given now.".to_owned()),
        (_, None) => {
            let text = "The media type is not given any more: a host may show the resource differently.";
            (Class::Behaviour, text.to_owned())
        }
    };
    changes.push(class, &format!("{noun}.media-type"), subject.member("mimeType", types), text);
}

/// A template whose text has changed.
fn compare_template(changes: &mut Changes, old: Indexed<'_>, new: Indexed<'_>) {
    let at = Subject {
        new: subject(List::ResourceTemplates, None, Some(new)).new,
        ..subject(List::ResourceTemplates, Some(old), None)
    };
    let (before, after) = (template(old.1), template(new.1));
    let key = List::ResourceTemplates.key();
    let texts = pair(old.1, new.1, key);
    let variables = |template: &Option<UriTemplate>| -> BTreeSet<String> {
        template.iter().flat_map(|it| it.variables().into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()).collect()
    };
    let (had, has) = (variables(&before), variables(&after));
    let lost: Vec<_> = had.difference(&has).cloned().collect();
    // A URI of before must match now.
    let values = had.iter().map(|name| (name.clone(), Json::from("x"))).collect();
    let still_matches = match (&before, &after) {
        (Some(before), Some(after)) => after.match_uri(&before.expand(&values)).is_some(),
        _ => false,
    };
    let written = texts.1.map(quoted).unwrap_or_default();
    let (class, text) = match (&lost[..], still_matches) {
        ([], true) => {
            let gained: Vec<_> = has.difference(&had).map(|name| format!("`{name}`")).collect();
            let text = match &gained[..] {
                [] => format!("It is written {written} now; URIs of before match it."),
                gained => format!("It is written {written} now, with {}; URIs of before match it.", gained.join(", ")),
            };
            (Class::Addition, text)
        }
        ([], false) => (Class::Breaking, format!("It is written {written} now: URIs of before do not match it.")),
        (lost, _) => {
            let lost: Vec<_> = lost.iter().map(|name| format!("`{name}`")).collect();
            let text = format!("It is written {written} now, without {}: those who set it fail.", lost.join(", "));
            (Class::Breaking, text)
        }
    };
    changes.push(class, "template.uri", at.member(key, texts), text);
    let item = |side: &Json| {
        let mut item = side.clone();
        item.as_object_mut().map(|members| members.remove(key));
        item
    };
    compare_resource(changes, List::ResourceTemplates, (old.0, &item(old.1)), (new.0, &item(new.1)));
}

fn template(item: &Json) -> Option<UriTemplate> {
    UriTemplate::parse(item.get(List::ResourceTemplates.key())?.as_str()?).ok()
}
