//! The most bytes or tokens of a list or a result.

use serde_json::Value as Json;

use crate::keys::KEYS;
use rehearse_document::{Node, Problems, text::ByteCount};
use rehearse_llm::tokens::Encoding;

/// The members of a result that are lists, and what names their items.
const LISTS: [(&str, &str); 4] =
    [("tools", "name"), ("prompts", "name"), ("resources", "uri"), ("resourceTemplates", "uriTemplate")];

/// How many items of a list a message names.
const LARGEST: usize = 3;

/// The key `size` or `tokens`.
#[derive(Debug)]
pub(crate) struct Limit {
    max: usize,
    /// That of tokens; otherwise bytes are counted.
    encoding: Option<Encoding>,
}

impl Limit {
    pub(crate) fn of_size(node: &Node) -> Result<Limit, Problems> {
        let max = KEYS.fields(node, "size")?.required("max")?.bytes()?;
        Ok(Limit { max, encoding: None })
    }

    pub(crate) fn of_tokens(node: &Node) -> Result<Limit, Problems> {
        let fields = KEYS.fields(node, "tokens")?;
        let Some(default) = Encoding::ALL.first() else {
            return Err(node.problem("this program was built without `tokens`").into());
        };
        let named = |node: &Node| {
            let name = node.str()?;
            Encoding::ALL.iter().find(|encoding| encoding.name() == name).ok_or_else(|| {
                let names: Vec<_> = Encoding::ALL.iter().map(|encoding| encoding.name()).collect();
                node.problem(format!("unknown encoding `{name}`")).hint(format!("use {}", names.join(" or "))).into()
            })
        };
        let encoding = fields.read("encoding", named)?.unwrap_or(default);
        Ok(Limit { max: fields.required("max")?.integer()?, encoding: Some(*encoding) })
    }

    /// What to say of a result that is larger. Of the result of a list, only the lists count.
    pub(crate) fn mismatch(&self, result: &Json) -> Option<String> {
        let lists = LISTS.iter().filter_map(|(list, name)| Some((result.get(list)?.as_array()?, *name)));
        let lists: Vec<_> = lists.collect();
        let json: String = match &lists[..] {
            [] => result.to_string(),
            lists => lists.iter().map(|(items, _)| serde_json::to_string(items).unwrap_or_default()).collect(),
        };
        let found = self.count(&json);
        if found <= self.max {
            return None;
        }
        let items = lists.iter().flat_map(|(items, name)| items.iter().map(move |item| (item, *name)));
        let mut items: Vec<_> =
            items.map(|(item, name)| (self.count(&item.to_string()), item[name].as_str().unwrap_or("?"))).collect();
        items.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let largest: Vec<_> = items.iter().take(LARGEST).map(|(count, name)| format!("`{name}` {count}")).collect();
        let largest = if largest.is_empty() { String::new() } else { format!("; the largest: {}", largest.join(", ")) };
        Some(match self.encoding {
            None => format!("size: expected at most {}, found {}{largest}", ByteCount(self.max), ByteCount(found)),
            Some(encoding) => {
                format!("tokens: expected at most {} of {}, found {found}{largest}", self.max, encoding.name())
            }
        })
    }

    fn count(&self, json: &str) -> usize {
        self.encoding.map_or(json.len(), |encoding| encoding.count(json))
    }
}
