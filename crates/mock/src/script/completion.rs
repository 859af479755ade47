//! The completions of the arguments of prompts and the variables of resource templates.

use std::collections::HashSet;

use super::{
    ItemKind, ScriptReader,
    keys::KEYS,
    reader::{declared, unknown},
};
use rehearse_document::uri_template::UriTemplate;
use rehearse_document::{Entry, Node, Problem, Problems, Value, nearest, template::Data};

/// Values that complete one argument of a prompt or one variable of a resource template.
#[derive(Debug)]
pub struct Completion {
    /// The prompt or resource template.
    pub reference: CompletionTarget,
    /// The argument or variable.
    pub argument: String,
    /// An array of strings.
    pub values: Data,
}

/// The owner of a completed argument (2025-11-25, Completion: Reference Types).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionTarget {
    /// The prompt of this name.
    Prompt(String),
    /// The resource template of this URI template.
    Resource(String),
}

impl CompletionTarget {
    /// Whether this refers to the item with this name. The name of a resource template is its URI template.
    pub fn refers_to(&self, kind: ItemKind, name: &str) -> bool {
        match self {
            CompletionTarget::Prompt(prompt) => kind == ItemKind::Prompt && prompt == name,
            CompletionTarget::Resource(uri) => kind == ItemKind::ResourceTemplate && uri == name,
        }
    }
}

impl Completion {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<Completion, Problems> {
        let fields = KEYS.fields(node, "completion")?;
        let Entry { key, node: name, .. } = fields.exactly_one(&KEYS.choices("completion"))?;
        let name = name.str()?.to_owned();
        let values = fields.required("values")?;
        if !matches!(values.value, Value::String(_)) {
            values.each(|value| Ok(value.str()?.to_owned()))?;
        }
        Ok(Completion {
            reference: if key == "prompt" { CompletionTarget::Prompt(name) } else { CompletionTarget::Resource(name) },
            argument: fields.required("argument")?.str()?.to_owned(),
            values: reader.templates.data(values)?,
        })
    }
}

/// Entries of `completions` that no client can request, or that another one hides.
pub(super) fn mistakes(root: &Node) -> Vec<Problem> {
    let completions = root.get("completions").and_then(|list| list.as_items()).unwrap_or_default();
    let mut seen = HashSet::new();
    completions.iter().filter_map(|completion| mistake(completion, root, &mut seen)).collect()
}

fn mistake<'n>(completion: &'n Node, root: &Node, seen: &mut HashSet<[&'n str; 2]>) -> Option<Problem> {
    let (kinds, node): (&[ItemKind], &Node) = match (completion.get("prompt"), completion.get("resource")) {
        (Some(prompt), _) => (&[ItemKind::Prompt], prompt),
        (None, resource) => (&[ItemKind::Resource, ItemKind::ResourceTemplate], resource?),
    };
    let (name, noun) = (node.as_str()?, if kinds.len() == 1 { "prompt" } else { "resource" });
    let only = "only what is there can be completed";
    if let Some(problem) = unknown(noun, name, node.span, &declared(root, kinds), only) {
        return Some(problem);
    }
    let node = completion.get("argument")?;
    let argument = node.as_str()?;
    let known = match noun {
        "prompt" => arguments(root, name),
        _ => UriTemplate::parse(name).ok()?.variables().into_iter().map(str::to_owned).collect(),
    };
    if !known.iter().any(|known| known == argument) {
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let problem = node.problem(format!("the {noun} `{name}` has no argument `{argument}`"));
        return Some(match (nearest(argument, &known), &known[..]) {
            (Some(near), _) => problem.hint(format!("did you mean `{near}`?")),
            (None, []) => problem.hint("it has none at all"),
            (None, known) => problem.hint(format!("it has {}", known.join(", "))),
        });
    }
    (!seen.insert([name, argument])).then(|| node.problem(format!("`{argument}` of `{name}` is completed twice")))
}

/// The names of the arguments of a prompt.
fn arguments(root: &Node, prompt: &str) -> Vec<String> {
    let prompts = root.get(ItemKind::Prompt.list_key()).and_then(|list| list.as_items()).unwrap_or_default();
    let is_named = |item: &&Node| item.get(ItemKind::Prompt.name_key()).is_some_and(|name| name.str() == Ok(prompt));
    let declared = prompts.iter().find(is_named).and_then(|prompt| prompt.get("arguments")?.as_items());
    let names = declared.unwrap_or_default().iter().filter_map(|argument| argument.get("name")?.as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use crate::script::Script;
    use rehearse_document::Source;

    #[test]
    fn arguments_of_a_prompt_and_of_a_template_are_completed() {
        let text = "prompts: [{ name: plan, arguments: [{ name: team }], messages: [] }]\n\
                    resourceTemplates: [{ uriTemplate: 'x://{id}', name: x, text: y }]\n\
                    completions: [{ prompt: plan, argument: team, values: [a] }, { resource: 'x://{id}', argument: id, values: [b] }]";
        assert_eq!(Script::parse(&Source::new("m", text)).expect("valid").completions.len(), 2);
    }
}
