//! The state of reading a script.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Item, ItemKind, PromptItem, ReplySubject, ResourceItem, ResourceTemplateItem, ToolItem, app::AppPage, repeat,
    rule::HANDLER_KEY,
};
use crate::handler::Handler;
use rehearse_document::{
    Fields, Node, Problem, Problems, Source, Span, nearest,
    template::{SCRIPT_NAMES, Templates},
};
use rehearse_protocol::List;

/// Collects information while a script is read.
pub(super) struct ScriptReader {
    pub(super) templates: Templates,
    /// The number of items so far.
    pub(super) item_count: usize,
    /// Whether the current item is one of many with `repeat`.
    pub(super) repeats: bool,
    pub(super) uses: UsedFeatures,
    pub(super) replacements: Replacements,
    /// The items that steps enable and disable, with their positions.
    pub(super) mentioned: Vec<(ItemKind, String, Span)>,
    /// The handlers that the text may name; none for a file.
    pub(super) handlers: Vec<Handler>,
    /// The first position of scopes in an item.
    pub(super) scopes: Option<Span>,
    /// The pages of apps.
    pub(super) pages: Vec<AppPage>,
    /// Where the files are that the script names.
    pub(super) folder: PathBuf,
}

/// Items in `replace` steps.
#[derive(Default)]
pub(super) struct Replacements {
    pub(super) tools: Vec<ToolItem>,
    pub(super) resources: Vec<ResourceItem>,
    pub(super) resource_templates: Vec<ResourceTemplateItem>,
    pub(super) prompts: Vec<PromptItem>,
}

/// The features that a script uses. They decide which capabilities are declared and which data is kept.
#[derive(Clone, Debug, Default)]
pub struct UsedFeatures {
    /// Whether some step logs.
    pub logging: bool,
    /// Whether some step requests input from the client.
    pub input_requests: bool,
    /// Whether some call runs as a task.
    pub tasks: bool,
    /// Whether some tool has an app.
    pub apps: bool,
    /// Whether some step notifies about an updated resource.
    pub updates: bool,
    /// Whether some answer depends on the client: on headers or on its capabilities.
    pub caller: bool,
    /// The notifications of the lists that may change.
    changes: BTreeSet<&'static str>,
}

impl UsedFeatures {
    /// The list of this kind may change.
    pub(super) fn changes(&mut self, kind: ItemKind) {
        self.changes.extend(kind.list().map(List::change));
    }

    /// Whether the list of this kind may change.
    pub fn change(&self, kind: ItemKind) -> bool {
        kind.list().is_some_and(|list| self.changes.contains(list.change()))
    }
}

impl ScriptReader {
    pub(super) fn new(source: &Arc<Source>) -> Self {
        ScriptReader {
            templates: Templates::new(source, SCRIPT_NAMES),
            item_count: 0,
            repeats: false,
            uses: UsedFeatures::default(),
            replacements: Replacements::default(),
            mentioned: Vec::new(),
            handlers: Vec::new(),
            scopes: None,
            pages: Vec::new(),
            folder: Path::new(&source.name).parent().unwrap_or(Path::new("")).to_owned(),
        }
    }

    /// The key of a handler, if there may be one.
    pub(super) fn handler_key(&self) -> &'static [&'static str] {
        if self.handlers.is_empty() { &[] } else { &[HANDLER_KEY] }
    }

    /// The handler that `node` names.
    pub(super) fn handler(&mut self, node: &Node, subject: &ReplySubject) -> Result<Handler, Problems> {
        if *subject != ReplySubject::Tool {
            return Err(node.problem("only a tool can have a handler").into());
        }
        self.uses.logging = true;
        let id: u64 = node.integer()?;
        let handler = self.handlers.iter().find(|handler| handler.id() == id);
        handler.cloned().ok_or_else(|| node.problem("there is no such handler").into())
    }

    /// Removes the answers of the client from the names of the following templates.
    pub(super) fn unbind(&mut self) {
        self.templates.unbind();
        if self.repeats {
            self.templates.bind(repeat::NAME);
        }
    }

    /// Reads the list of one kind; mistakes are added to `problems`.
    pub(super) fn read_items<T>(
        &mut self,
        fields: &Fields<'_>,
        kind: ItemKind,
        read: impl Fn(&Node, &mut ScriptReader) -> Result<T, Problems>,
        problems: &mut Vec<Problem>,
    ) -> Vec<T> {
        let list = fields.read_each(kind.list_key(), |node| read(node, self));
        list.unwrap_or_else(|found| {
            problems.extend(found.0);
            Vec::new()
        })
    }

    /// A resource that always has these contents.
    pub(super) fn literal(&mut self, uri: &str, definition: &str, contents: &str) -> ResourceItem {
        self.item_count += 1;
        ResourceItem {
            item: Item::literal(ItemKind::Resource, uri, self.item_count - 1, contents.to_owned()),
            definition: definition.to_owned(),
        }
    }

    /// Problems of steps and faults that name unknown items.
    pub(super) fn unknown_names(&self, root: &Node) -> Vec<Problem> {
        let later = "what appears later has `enabled: false`";
        let unknown = |(kind, name, span): &(ItemKind, String, Span)| {
            unknown(kind.noun(), name, *span, &declared(root, &[*kind]), later)
        };
        self.mentioned.iter().filter_map(unknown).collect()
    }
}

/// The names of the declared items of these kinds.
pub(super) fn declared<'n>(root: &'n Node, kinds: &[ItemKind]) -> Vec<&'n str> {
    let names = |kind: &ItemKind| {
        let list = root.get(kind.list_key()).and_then(|list| list.as_items()).unwrap_or_default();
        let key = kind.name_key();
        list.iter().filter_map(move |item| item.get(key)?.as_str())
    };
    kinds.iter().flat_map(names).collect()
}

pub(super) fn unknown(noun: &str, name: &str, span: Span, known: &[&str], hint: &str) -> Option<Problem> {
    let problem = || Problem::new(span, format!("there is no {noun} `{name}`"));
    let hint = nearest(name, known).map_or_else(|| hint.to_owned(), |near| format!("did you mean `{near}`?"));
    (!known.contains(&name)).then(|| problem().hint(hint))
}
