//! The common parts of all items: tools, resources, resource templates, prompts and methods.

use std::sync::Arc;

use super::{ReplySubject, Rule, ScriptReader, keys::KEYS, repeat, scope};
use rehearse_document::{Fields, Node, Problems};
use rehearse_protocol::List;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A resource template.
    ResourceTemplate,
    /// A prompt.
    Prompt,
    /// A method.
    Method,
}

impl ItemKind {
    /// Every kind.
    pub const ALL: [ItemKind; 5] =
        [ItemKind::Tool, ItemKind::Resource, ItemKind::ResourceTemplate, ItemKind::Prompt, ItemKind::Method];

    /// The kind with this key.
    pub(super) fn of_key(key: &str) -> Option<ItemKind> {
        ItemKind::ALL.into_iter().find(|kind| kind.key() == key)
    }

    /// The list of such items; `None` for methods.
    pub fn list(self) -> Option<List> {
        match self {
            ItemKind::Tool => Some(List::Tools),
            ItemKind::Resource => Some(List::Resources),
            ItemKind::ResourceTemplate => Some(List::ResourceTemplates),
            ItemKind::Prompt => Some(List::Prompts),
            ItemKind::Method => None,
        }
    }

    /// The method that requests such an item; empty for methods, which clients name themselves.
    pub(crate) fn item_method(self) -> &'static str {
        self.list().map_or("", List::item_method)
    }

    /// The key of such items in a script, and in the result of a list.
    pub fn list_key(self) -> &'static str {
        self.list().map_or("methods", List::member)
    }

    /// The key for one such item in a step or a condition.
    pub fn key(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Resource => "resource",
            ItemKind::ResourceTemplate => "resourceTemplate",
            ItemKind::Prompt => "prompt",
            ItemKind::Method => "method",
        }
    }

    /// The member with which clients name one such item.
    pub fn name_key(self) -> &'static str {
        self.list().map_or("method", List::key)
    }

    /// The noun for one such item in messages.
    pub fn noun(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Resource => "resource",
            ItemKind::ResourceTemplate => "resource template",
            ItemKind::Prompt => "prompt",
            ItemKind::Method => "method",
        }
    }
}

impl From<List> for ItemKind {
    fn from(list: List) -> ItemKind {
        match list {
            List::Tools => ItemKind::Tool,
            List::Resources => ItemKind::Resource,
            List::ResourceTemplates => ItemKind::ResourceTemplate,
            List::Prompts => ItemKind::Prompt,
        }
    }
}

/// An item by its kind and its position in the script's list of that kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemRef {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The position in the script's list.
    pub index: usize,
}

/// The rules of an item, and its access control.
#[derive(Debug)]
pub struct Item {
    /// The label of the item in the journal: `tools.echo`.
    pub label: Arc<str>,
    /// The name, URI, URI template or method in requests.
    pub name: String,
    /// Its position among all items of the script.
    pub number: usize,
    /// The rules; empty if the script has no answer.
    pub rules: Vec<Arc<Rule>>,
    /// The number of added rules, which are the first ones.
    pub added: usize,
    /// Whether it is visible when the server starts.
    pub enabled: bool,
    /// The scopes that a token needs for it.
    pub scopes: Vec<String>,
    /// The expected number of calls, for the verification.
    pub expect: Option<CallRange>,
    /// Its number, from 1, if it is one of many with `repeat`.
    pub repetition: Option<u64>,
}

/// A number of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRange {
    /// At least this many.
    pub min: u64,
    /// At most this many.
    pub max: u64,
}

impl CallRange {
    /// Whether this number of calls is in the range.
    pub fn contains(self, calls: u64) -> bool {
        (self.min..=self.max).contains(&calls)
    }

    /// Reads `{ calls: 2 }` or `{ calls: { min: 1, max: 3 } }`.
    pub(super) fn read(node: &Node) -> Result<CallRange, Problems> {
        let calls = KEYS.fields(node, "expect")?.required("calls")?;
        if calls.as_items().is_none() && calls.as_entries().is_none() {
            let exactly = calls.integer()?;
            return Ok(CallRange { min: exactly, max: exactly });
        }
        let fields = KEYS.fields(calls, "calls")?;
        let min = fields.read("min", Node::integer)?.unwrap_or(0);
        let max = fields.read("max", Node::integer)?.unwrap_or(u64::MAX);
        if min > max {
            return Err(calls.problem("`min` is more than `max`").into());
        }
        Ok(CallRange { min, max })
    }
}

impl std::fmt::Display for CallRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let calls = |number: u64| if number == 1 { "call" } else { "calls" };
        match (self.min, self.max) {
            (min, max) if min == max => write!(f, "{min} {}", calls(min)),
            (min, u64::MAX) => write!(f, "at least {min} {}", calls(min)),
            (0, max) => write!(f, "at most {max} {}", calls(max)),
            (min, max) => write!(f, "{min} to {max} calls"),
        }
    }
}

impl Item {
    /// A resource that always has these contents, which are JSON text.
    pub(super) fn literal(kind: ItemKind, name: &str, number: usize, contents: String) -> Item {
        let label: Arc<str> = format!("{}.{name}", kind.list_key()).into();
        let rules = vec![Arc::new(Rule::literal(label.clone(), "contents", contents))];
        let (scopes, expect, repetition) = (Vec::new(), None, None);
        Item { label, name: name.to_owned(), number, rules, added: 0, enabled: true, scopes, expect, repetition }
    }

    pub(super) fn read(
        fields: &Fields<'_>,
        subject: &ReplySubject,
        reader: &mut ScriptReader,
    ) -> Result<Item, Problems> {
        let kind = subject.kind();
        let name = fields.required(kind.name_key())?.str()?.to_owned();
        let label = format!("{}.{name}", kind.list_key());
        reader.item_count += 1;
        let number = reader.item_count - 1;
        let scopes = fields.read_each("scopes", scope::read)?;
        reader.scopes = reader.scopes.or(fields.get("scopes").map(|node| node.span));
        let repetition = fields.read(repeat::KEY, Node::integer)?;
        let outer = std::mem::replace(&mut reader.repeats, repetition.is_some());
        let rules = Rule::read_all(fields, &label, subject, reader);
        reader.repeats = outer;
        Ok(Item {
            rules: rules?,
            added: 0,
            enabled: fields.read("enabled", Node::bool)?.unwrap_or(true),
            expect: fields.read("expect", CallRange::read)?,
            label: label.into(),
            name,
            number,
            scopes,
            repetition,
        })
    }
}
