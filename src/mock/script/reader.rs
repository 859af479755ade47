//! What reading a script collects besides what it returns.

use std::sync::Arc;

use super::{Kind, PromptStub, ResourceStub, ResourceTemplateStub, SkillResource, Stub, ToolStub};
use crate::{
    config::{Fields, Node, Problem, Problems, Source, Span, nearest},
    mock::template::{SCRIPT_NAMES, Templates},
};

/// Collects while a script is read.
pub(super) struct Reader {
    pub(super) templates: Templates,
    /// How many stubs were read.
    pub(super) stubs: usize,
    pub(super) uses: Uses,
    pub(super) replacements: Replacements,
    /// What steps enable and disable, and where they say so.
    pub(super) mentioned: Vec<(Kind, String, Span)>,
    /// Where a stub first says which scopes it needs.
    pub(super) scopes: Option<Span>,
}

/// Stubs that stand in steps, to replace others.
#[derive(Default)]
pub(super) struct Replacements {
    pub(super) tools: Vec<ToolStub>,
    pub(super) resources: Vec<ResourceStub>,
    pub(super) resource_templates: Vec<ResourceTemplateStub>,
    pub(super) prompts: Vec<PromptStub>,
}

/// What a script makes use of, which decides what is declared and what need not be kept.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    pub logging: bool,
    pub questions: bool,
    pub tasks: bool,
    /// Whether some step says that a resource was updated.
    pub updates: bool,
    pub headers: bool,
    tools_change: bool,
    prompts_change: bool,
    resources_change: bool,
}

impl Uses {
    /// The list of this kind may change.
    pub(super) fn changes(&mut self, kind: Kind) {
        match kind {
            Kind::Tool => self.tools_change = true,
            Kind::Prompt => self.prompts_change = true,
            Kind::Resource | Kind::ResourceTemplate => self.resources_change = true,
            Kind::Method => {}
        }
    }

    /// Whether the list of this kind may change.
    pub fn change(&self, kind: Kind) -> bool {
        match kind {
            Kind::Tool => self.tools_change,
            Kind::Prompt => self.prompts_change,
            Kind::Resource | Kind::ResourceTemplate => self.resources_change,
            Kind::Method => false,
        }
    }
}

impl Reader {
    pub(super) fn new(source: &Arc<Source>) -> Self {
        Reader {
            templates: Templates::new(source, SCRIPT_NAMES),
            stubs: 0,
            uses: Uses::default(),
            replacements: Replacements::default(),
            mentioned: Vec::new(),
            scopes: None,
        }
    }

    /// Reads the list of one kind; what is wrong with it is added to `problems`.
    pub(super) fn each<T>(
        &mut self,
        fields: &Fields<'_>,
        kind: Kind,
        read: impl Fn(&Node, &mut Reader) -> Result<T, Problems>,
        problems: &mut Vec<Problem>,
    ) -> Vec<T> {
        let list = fields.read_each(kind.list_key(), |node| read(node, self));
        list.unwrap_or_else(|found| {
            problems.extend(found.0);
            Vec::new()
        })
    }

    /// A file of a skill as a resource.
    pub(super) fn skill_file(&mut self, file: &SkillResource) -> ResourceStub {
        self.stubs += 1;
        ResourceStub {
            stub: Stub::literal(Kind::Resource, &file.uri, self.stubs - 1, file.contents.clone()),
            definition: file.definition.clone(),
        }
    }

    /// Steps that enable or disable what the script does not have.
    pub(super) fn unknown_mentions(&self, fields: &Fields<'_>) -> Vec<Problem> {
        let names = |kind: Kind| {
            let list = fields.get(kind.list_key()).and_then(|list| list.items().ok()).unwrap_or_default();
            list.iter().filter_map(move |item| item.get(kind.name_key())?.str().ok()).collect::<Vec<_>>()
        };
        let unknown = |(kind, name, span): &(Kind, String, Span)| {
            let known = names(*kind);
            if known.contains(&name.as_str()) {
                return None;
            }
            let problem = Problem::new(*span, format!("there is no {} `{name}`", kind.noun()));
            Some(match nearest(name, &known) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint("what appears only later is declared with `enabled: false`"),
            })
        };
        self.mentioned.iter().filter_map(unknown).collect()
    }
}
