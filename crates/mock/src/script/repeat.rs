//! Many items from one: an item with `repeat: 1000` is a thousand items.
//!
//! Its MCP members may have templates over `n`, the number of each from 1, which are filled in when the script is read.
//! The templates of its answer know `n`, too.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value as Json;

use super::{ItemKind, keys::KEYS};
use rehearse_document::{Entry, Node, Problems, Source, Value, template::Templates};

/// The key with the number of items. In each item it is the number of the item.
pub(super) const KEY: &str = "repeat";
/// The name of the number in templates.
pub(super) const NAME: &str = "n";
pub(super) const MAX: usize = 100_000;

/// The script with all repeated items written out.
///
/// # Errors
/// An invalid number, or a template that uses more than `n`.
pub(super) fn expand<'n>(root: &'n Node, source: &Arc<Source>) -> Result<Cow<'n, Node>, Problems> {
    let lists = || ItemKind::ALL.into_iter().filter_map(|kind| root.get(kind.list_key())?.as_items());
    if !lists().flatten().any(|item| item.get(KEY).is_some()) {
        return Ok(Cow::Borrowed(root));
    }
    let mut templates = Templates::new(source, &[NAME]);
    let mut expanded = root.clone();
    let Value::Mapping(entries) = &mut expanded.value else { return Ok(Cow::Borrowed(root)) };
    for entry in entries.iter_mut().filter(|entry| ItemKind::ALL.iter().any(|kind| kind.list_key() == entry.key)) {
        let Value::Sequence(items) = &mut entry.node.value else { continue };
        let copies = std::mem::take(items).into_iter().map(|item| copies(item, &mut templates));
        *items = Problems::collect(copies)?.into_iter().flatten().collect();
    }
    Ok(Cow::Owned(expanded))
}

fn copies(item: Node, templates: &mut Templates) -> Result<Vec<Node>, Problems> {
    let Some(times) = item.get(KEY) else { return Ok(vec![item]) };
    let number = times.integer().ok().filter(|number| (1..=MAX).contains(number));
    let number = number.ok_or_else(|| times.problem(format!("`{KEY}` must be a number from 1 to {MAX}")))?;
    (1..=number).map(|n| copy(&item, n, templates)).collect()
}

fn copy(item: &Node, n: usize, templates: &mut Templates) -> Result<Node, Problems> {
    // Their templates are filled in for each request.
    let answers = [KEYS.keys("resourceAnswerKeys"), KEYS.keys("promptShort"), vec!["rules"]].concat();
    let entry = |Entry { key, key_span, node }: &Entry| {
        let filled = match key.as_str() {
            KEY => Node { span: node.span, value: Value::Number(n.to_string()) },
            answer if answers.contains(&answer) => node.clone(),
            _ => fill(node, n, true, templates)?,
        };
        Ok(Entry { key: key.clone(), key_span: *key_span, node: filled })
    };
    let entries = item.entries()?.iter().map(entry).collect::<Result<_, Problems>>()?;
    Ok(Node { span: item.span, value: Value::Mapping(entries) })
}

/// The node with the number in its strings. Inside of it, a string that is one expression becomes the value of the
/// expression.
fn fill(node: &Node, n: usize, is_text: bool, templates: &mut Templates) -> Result<Node, Problems> {
    let value = match &node.value {
        Value::String(_) => {
            let (data, context) = (templates.data(node)?, minijinja::context! { n });
            let mut json = String::new();
            let written = templates.write_json(&data, &context, &mut json);
            written.map_err(|error| node.problem(error.to_string()))?;
            match serde_json::from_str(&json).unwrap_or_default() {
                Json::String(text) => Value::String(text),
                _ if is_text => Value::String(json),
                Json::Number(_) => Value::Number(json),
                Json::Bool(value) => Value::Bool(value),
                _ => return Err(node.problem("this template gives neither a string nor a number").into()),
            }
        }
        Value::Sequence(items) => {
            Value::Sequence(items.iter().map(|item| fill(item, n, false, templates)).collect::<Result<_, _>>()?)
        }
        Value::Mapping(entries) => {
            let entry = |entry: &Entry| Ok(Entry { node: fill(&entry.node, n, false, templates)?, ..entry.clone() });
            Value::Mapping(entries.iter().map(entry).collect::<Result<_, Problems>>()?)
        }
        other => other.clone(),
    };
    Ok(Node { span: node.span, value })
}

#[cfg(test)]
mod tests {
    use crate::script::Script;
    use rehearse_document::Source;

    fn parse(text: &str) -> Result<Script, String> {
        Script::parse(&Source::new("m", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn one_item_can_repeat() {
        let text = "
tools:
  - { name: first, reply: x }
  - repeat: 3
    name: 'tool_{{ n }}'
    inputSchema: { type: object, properties: { size: { maximum: '{{ n * 10 }}', title: 'up to {{ n * 10 }}' } } }
    rules: [{ when: { call: 1 }, reply: 'I am {{ n }}' }, { reply: '{{ n + args.size }}' }]
resources: [{ repeat: 2, uri: 'file:///{{ n }}', name: '{{ n }}', text: '{{ n }} at {{ uri }}' }]";
        let script = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<_> = script.tools.iter().map(|tool| tool.item.name.as_str()).collect();
        assert_eq!(names, ["first", "tool_1", "tool_2", "tool_3"]);
        assert_eq!(
            script.tools.iter().map(|tool| tool.item.repetition).collect::<Vec<_>>(),
            [None, Some(1), Some(2), Some(3)]
        );
        assert_eq!(
            script.tools[2].definition,
            r#"{"name":"tool_2","inputSchema":{"type":"object","properties":{"size":{"maximum":20,"title":"up to 20"}}}}"#
        );
        assert_eq!(script.resources[1].definition, r#"{"uri":"file:///2","name":"2"}"#);
    }
}
