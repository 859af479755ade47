//! The changes from one surface to another.

mod calls;
mod items;
mod prompts;
mod resources;
mod server;
mod tools;

pub use self::calls::compare_calls;

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::Surface;
use rehearse_protocol::List;
use rehearse_report::diff::{Change, Class};

/// The changes from one surface to another, worst first. What one of both does not know is not compared; the order of
/// lists and of keys is no change.
///
/// ```
/// use rehearse_diff::{Surface, compare};
/// use serde_json::json;
///
/// let old = Surface::from_json(&json!({ "tools": [{ "name": "search" }] }));
/// let new = Surface::from_json(&json!({ "tools": [{ "name": "find" }] }));
/// let rules: Vec<_> = compare(&old, &new).into_iter().map(|change| change.rule).collect();
/// assert_eq!(rules, ["tool.removed", "tool.added"]);
/// ```
pub fn compare(old: &Surface, new: &Surface) -> Vec<Change> {
    let mut changes = Changes::default();
    server::compare(&mut changes, old, new);
    for list in List::ALL {
        let (Some(before), Some(after)) = (old.list(list), new.list(list)) else { continue };
        match list {
            List::Tools => tools::compare(&mut changes, before, after),
            List::Prompts => prompts::compare(&mut changes, before, after),
            List::Resources => resources::compare(&mut changes, before, after),
            List::ResourceTemplates => resources::compare_templates(&mut changes, before, after),
        }
    }
    let mut changes = changes.found;
    Change::sort(&mut changes);
    changes
}

/// The changes that were found.
#[derive(Default)]
struct Changes {
    found: Vec<Change>,
}

/// What a change is about, and where it is on both sides.
#[derive(Clone)]
struct Subject {
    name: String,
    old: Option<String>,
    new: Option<String>,
}

/// A value before and after.
type Pair<'s> = (Option<&'s Json>, Option<&'s Json>);

impl Changes {
    fn push(&mut self, class: Class, rule: &str, subject: Subject, message: impl Into<String>) {
        let Subject { name, old, new } = subject;
        let (rule, message) = (rule.to_owned(), message.into());
        self.found.push(Change {
            class,
            is_possible: false,
            rule,
            subject: name,
            old,
            new,
            message,
            instance: None,
            place: None,
            accepted: None,
        });
    }
}

impl Subject {
    /// A member of it, which may be on one side only.
    fn member(&self, key: &str, (old, new): Pair<'_>) -> Subject {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        let at = |side: &Option<String>| side.as_ref().map(|side| format!("{side}/{escaped}"));
        Subject { name: self.name.clone(), old: old.and_then(|_| at(&self.old)), new: new.and_then(|_| at(&self.new)) }
    }
}

/// A member on both sides; null is as good as absent.
fn pair<'s>(old: &'s Json, new: &'s Json, key: &str) -> Pair<'s> {
    let member = |side: &'s Json| side.get(key).filter(|value| !value.is_null());
    (member(old), member(new))
}

/// The keys of two objects, in the order of the alphabet.
fn keys(old: &Json, new: &Json) -> BTreeSet<String> {
    let keys = |side: &Json| side.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    keys(old).into_iter().chain(keys(new)).collect()
}

/// A text in a sentence.
fn quoted(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), |text| format!("{text:?}"));
    rehearse_document::text::shortened(&text, LONGEST)
}

/// How much of a value is quoted.
const LONGEST: usize = 80;
