//! The placeholders of a host's texts.

use rehearse_document::{Entry, Node, Value};

/// What the placeholders of one run stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// `{prompt}`
    pub prompt: String,
    /// `{model}`, the base URL of the model without `/v1`.
    pub model: String,
    /// `{key}`, the key for the model.
    pub key: String,
    /// `{home}`, the home folder.
    pub home: String,
    /// `{work}`, the folder in which the host is started.
    pub work: String,
    /// `{servers}`, the names with commas between them, and `{server}`, each of them.
    pub servers: Vec<String>,
}

/// The placeholders. The last stands for each server, and repeats what it is in.
pub(super) const PLACEHOLDERS: [&str; 7] = ["prompt", "model", "key", "home", "work", "servers", SERVER];

pub(super) const SERVER: &str = "server";

/// The first placeholder of a text: its name, and what is before and behind it.
pub(super) fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('{').find_map(|(start, _)| {
        let (name, after) = text[start + 1..].split_once('}')?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        is_name.then_some((name, &text[..start], after))
    })
}

impl Values {
    /// A text without `{server}`. What a placeholder stands for is not looked at again.
    pub fn expand(&self, text: &str) -> String {
        self.expand_for("", text)
    }

    /// A text; with `{server}` once for each server.
    pub fn expand_each(&self, text: &str) -> Vec<String> {
        match text.contains("{server}") {
            true => self.servers.iter().map(|server| self.expand_for(server, text)).collect(),
            false => vec![self.expand(text)],
        }
    }

    fn expand_for(&self, server: &str, text: &str) -> String {
        let (mut expanded, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((name, before, after)) = placeholder(rest) {
            expanded.push_str(before);
            match name {
                "prompt" => expanded.push_str(&self.prompt),
                "model" => expanded.push_str(&self.model),
                "key" => expanded.push_str(&self.key),
                "home" => expanded.push_str(&self.home),
                "work" => expanded.push_str(&self.work),
                "servers" => expanded.push_str(&self.servers.join(",")),
                _ => expanded.push_str(server),
            }
            rest = after;
        }
        expanded.push_str(rest);
        expanded
    }

    /// The same with all its texts and keys expanded.
    pub(super) fn expand_node(&self, node: &Node) -> Node {
        let of = |value| Node { span: node.span, value };
        match &node.value {
            Value::String(text) => of(Value::String(self.expand(text))),
            Value::Sequence(items) => {
                let item = |item: &Node| match item.as_str() {
                    Some(text) => {
                        let texts = self.expand_each(text).into_iter();
                        texts.map(|text| Node { span: item.span, value: Value::String(text) }).collect()
                    }
                    None => vec![self.expand_node(item)],
                };
                of(Value::Sequence(items.iter().flat_map(item).collect()))
            }
            Value::Mapping(entries) => {
                let entry = |entry: &Entry| {
                    let (node, key_span) = (self.expand_node(&entry.node), entry.key_span);
                    let keys = self.expand_each(&entry.key).into_iter();
                    keys.map(|key| Entry { key, key_span, node: node.clone() }).collect::<Vec<_>>()
                };
                of(Value::Mapping(entries.iter().flat_map(entry).collect()))
            }
            other => of(other.clone()),
        }
    }
}
