//! The visible items of one kind. Reading takes no lock.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::pages::Pages;
use crate::script::{ItemKind, ItemRef, ListChange, Script};
use rehearse_protocol::Era;

/// The items of one kind that clients can list and use.
#[derive(Debug)]
pub(super) struct VisibleItems {
    kind: ItemKind,
    seed: u64,
    slots: Mutex<Vec<ListedItem>>,
    view: ArcSwap<View>,
}

/// A position in the list.
#[derive(Debug, Clone)]
struct ListedItem {
    name: String,
    /// The position of the item in the script.
    index: usize,
    enabled: bool,
}

/// The enabled items, as clients see them.
#[derive(Debug)]
pub(super) struct View {
    by_name: HashMap<String, usize>,
    order: Vec<usize>,
    pages: Pages,
    /// The pages for legacy clients, where they differ.
    legacy_pages: Option<Pages>,
}

impl VisibleItems {
    pub(super) fn new(kind: ItemKind, script: &Script, seed: u64) -> Self {
        let slot = |index| {
            let item = script.item(ItemRef { kind, index });
            ListedItem { name: item.name.clone(), index, enabled: item.enabled }
        };
        let slots: Vec<_> = (0..script.declared(kind)).map(slot).collect();
        let view = ArcSwap::from_pointee(View::new(kind, script, &slots, seed));
        VisibleItems { kind, seed, slots: Mutex::new(slots), view }
    }

    pub(super) fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    /// Applies the change. Returns whether anything differs.
    pub(super) fn change(&self, script: &Script, change: &ListChange) -> bool {
        let mut slots = self.slots.lock();
        let changed = match change {
            ListChange::Enable(_, name) => set_enabled(&mut slots, name, true),
            ListChange::Disable(_, name) => set_enabled(&mut slots, name, false),
            ListChange::Replace(kind, replacement) => {
                let index = script.declared(*kind) + replacement;
                let name = &script.item(ItemRef { kind: *kind, index }).name;
                match slots.iter_mut().find(|slot| slot.name == *name) {
                    Some(slot) => {
                        let before = (slot.index, slot.enabled);
                        (slot.index, slot.enabled) = (index, true);
                        before != (index, true)
                    }
                    None => {
                        slots.push(ListedItem { name: name.clone(), index, enabled: true });
                        true
                    }
                }
            }
        };
        if changed {
            self.view.store(Arc::new(View::new(self.kind, script, &slots, self.seed)));
        }
        changed
    }
}

fn set_enabled(slots: &mut [ListedItem], name: &str, enabled: bool) -> bool {
    let slot = slots.iter_mut().find(|slot| slot.name == name && slot.enabled != enabled);
    slot.map(|slot| slot.enabled = enabled).is_some()
}

impl View {
    fn new(kind: ItemKind, script: &Script, slots: &[ListedItem], seed: u64) -> Self {
        let enabled: Vec<_> = slots.iter().filter(|slot| slot.enabled).collect();
        let definitions = |era| -> Vec<_> {
            enabled.iter().map(|slot| script.definition(ItemRef { kind, index: slot.index }, era)).collect()
        };
        let pages = |definitions: &[&str]| Pages::new(kind.list_key(), definitions, script.page_size, seed);
        let (modern, legacy) = (definitions(Era::Modern), definitions(Era::Legacy));
        View {
            by_name: enabled.iter().map(|slot| (slot.name.clone(), slot.index)).collect(),
            order: enabled.iter().map(|slot| slot.index).collect(),
            pages: pages(&modern),
            legacy_pages: (legacy != modern).then(|| pages(&legacy)),
        }
    }

    /// Whether clients see another list.
    pub(super) fn differs(&self, other: &View) -> bool {
        self.pages != other.pages
    }

    /// The position in the script of the item with this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The positions in the script, in the order of the list.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// A page of the list for clients of an era, as members of its result.
    pub(super) fn page(&self, era: Era, cursor: Option<&str>) -> Option<&str> {
        match era {
            Era::Legacy => self.legacy_pages.as_ref().unwrap_or(&self.pages).get(cursor),
            Era::Modern => self.pages.get(cursor),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_client::TestClient;

    #[test]
    fn output_that_is_not_an_object_is_for_modern_clients() {
        let script = "
pageSize: 1
tools:
  - { name: list, title: L, outputSchema: { type: array, items: { type: integer } }, reply: { structured: [1, '{{ call }}'] } }
  - { name: any, outputSchema: { type: object, properties: { a: true } }, reply: { structured: { a: 1 } } }
  - { name: object, outputSchema: { type: object }, reply: { structured: {} } }
";
        let modern = TestClient::modern(script, json!({}));
        let legacy = TestClient::legacy(script, json!({}));
        let listed = |client: &TestClient| {
            let (mut schemas, mut cursor) = (Vec::new(), None);
            loop {
                let params = cursor.map_or(json!({}), |cursor: serde_json::Value| json!({ "cursor": cursor }));
                let result = client.call("tools/list", params)["result"].take();
                schemas.push(result["tools"][0].get("outputSchema").is_some());
                assert!(result["tools"][0]["inputSchema"].is_object());
                match result.get("nextCursor") {
                    Some(next) => cursor = Some(next.clone()),
                    None => return schemas,
                }
            }
        };
        assert_eq!((listed(&modern), listed(&legacy)), (vec![true, true, true], vec![false, false, true]));
        let result = modern.tool("list", json!({}))["result"].take();
        assert_eq!((&result["structuredContent"], &result["content"][0]["text"]), (&json!([1, 1]), &json!("[1,1]")));
        let result = legacy.tool("list", json!({}))["result"].take();
        assert_eq!(result, json!({ "content": [{ "type": "text", "text": "[1,1]" }] }));
        assert_eq!(legacy.tool("any", json!({}))["result"]["structuredContent"], json!({ "a": 1 }));
    }
}
