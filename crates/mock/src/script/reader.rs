//! What reading a script collects besides what it returns.

use std::sync::Arc;

use super::{Item, ItemKind, PromptItem, ResourceItem, ResourceTemplateItem, SkillResource, ToolItem, repeat};
use rehearse_document::{
    Fields, Node, Problem, Problems, Source, Span, nearest,
    template::{SCRIPT_NAMES, Templates},
};

/// Collects while a script is read.
pub(super) struct ScriptReader {
    pub(super) templates: Templates,
    /// How many items were read.
    pub(super) item_count: usize,
    /// Whether the item that is being read is one of many with `repeat`.
    pub(super) repeats: bool,
    pub(super) uses: UsedFeatures,
    pub(super) replacements: Replacements,
    /// What steps enable and disable, and where they say so.
    pub(super) mentioned: Vec<(ItemKind, String, Span)>,
    /// Where an item first says which scopes it needs.
    pub(super) scopes: Option<Span>,
}

/// Items in `replace` steps.
#[derive(Default)]
pub(super) struct Replacements {
    pub(super) tools: Vec<ToolItem>,
    pub(super) resources: Vec<ResourceItem>,
    pub(super) resource_templates: Vec<ResourceTemplateItem>,
    pub(super) prompts: Vec<PromptItem>,
}

/// What a script makes use of, which decides what is declared and what need not be kept.
#[derive(Clone, Debug, Default)]
pub struct UsedFeatures {
    /// Whether some step logs.
    pub logging: bool,
    /// Whether some step requests input from the client.
    pub input_requests: bool,
    /// Whether some call runs as a task.
    pub tasks: bool,
    /// Whether some step says that a resource was updated.
    pub updates: bool,
    /// Whether some answer depends on who asks: on headers, or on what the client declares.
    pub caller: bool,
    tools_change: bool,
    prompts_change: bool,
    resources_change: bool,
}

impl UsedFeatures {
    /// The list of this kind may change.
    pub(super) fn changes(&mut self, kind: ItemKind) {
        match kind {
            ItemKind::Tool => self.tools_change = true,
            ItemKind::Prompt => self.prompts_change = true,
            ItemKind::Resource | ItemKind::ResourceTemplate => self.resources_change = true,
            ItemKind::Method => {}
        }
    }

    /// Whether the list of this kind may change.
    pub fn change(&self, kind: ItemKind) -> bool {
        match kind {
            ItemKind::Tool => self.tools_change,
            ItemKind::Prompt => self.prompts_change,
            ItemKind::Resource | ItemKind::ResourceTemplate => self.resources_change,
            ItemKind::Method => false,
        }
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
            scopes: None,
        }
    }

    /// The templates that follow know no answers of the client.
    pub(super) fn unbind(&mut self) {
        self.templates.unbind();
        if self.repeats {
            self.templates.bind(repeat::NAME);
        }
    }

    /// Reads the list of one kind; what is wrong with it is added to `problems`.
    pub(super) fn each<T>(
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

    /// A file of a skill as a resource.
    pub(super) fn skill_file(&mut self, file: &SkillResource) -> ResourceItem {
        self.item_count += 1;
        ResourceItem {
            item: Item::literal(ItemKind::Resource, &file.uri, self.item_count - 1, file.contents.clone()),
            definition: file.definition.clone(),
        }
    }

    /// Steps and faults that name what the script does not have.
    pub(super) fn unknown_names(&self, root: &Node) -> Vec<Problem> {
        let later = "what appears later has `enabled: false`";
        let unknown = |(kind, name, span): &(ItemKind, String, Span)| {
            unknown(kind.noun(), name, *span, &declared(root, &[*kind]), later)
        };
        self.mentioned.iter().filter_map(unknown).collect()
    }
}

/// The names of everything of these kinds that the script declares.
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
