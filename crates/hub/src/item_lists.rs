//! The resources, resource templates and prompts that one server listed.

use std::sync::Arc;

use rehearse_client::Listing;

/// What a server lists besides tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Resource,
    ResourceTemplate,
    Prompt,
}

impl ItemKind {
    const ALL: [ItemKind; 3] = [ItemKind::Resource, ItemKind::ResourceTemplate, ItemKind::Prompt];

    /// The capability of servers with such items (2025-11-25, Resources: Capabilities, Prompts: Capabilities).
    pub(super) fn capability(self) -> &'static str {
        match self {
            ItemKind::Resource | ItemKind::ResourceTemplate => "resources",
            ItemKind::Prompt => "prompts",
        }
    }

    /// The method that lists them, and the member of its result.
    pub(super) fn list(self) -> (&'static str, &'static str) {
        match self {
            ItemKind::Resource => ("resources/list", "resources"),
            ItemKind::ResourceTemplate => ("resources/templates/list", "resourceTemplates"),
            ItemKind::Prompt => ("prompts/list", "prompts"),
        }
    }
}

/// The last lists of a server, by kind.
#[derive(Debug, Default)]
pub(super) struct ItemLists {
    lists: [Option<ItemList>; ItemKind::ALL.len()],
    changes: u64,
}

#[derive(Debug)]
struct ItemList {
    listing: Arc<Listing>,
    /// Whether it need not be listed again.
    is_current: bool,
}

impl ItemLists {
    /// The last list.
    pub(super) fn last(&self, kind: ItemKind) -> Option<&Arc<Listing>> {
        self.lists[kind as usize].as_ref().map(|list| &list.listing)
    }

    /// The last list, unless the server must be asked again.
    pub(super) fn current(&self, kind: ItemKind) -> Option<&Arc<Listing>> {
        self.lists[kind as usize].as_ref().filter(|list| list.is_current).map(|list| &list.listing)
    }

    /// How often lists became old.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn set(&mut self, kind: ItemKind, listing: Arc<Listing>, is_current: bool) {
        self.lists[kind as usize] = Some(ItemList { listing, is_current });
    }

    /// The lists of this capability are no longer current.
    pub(super) fn outdate(&mut self, capability: &str) {
        self.changes += 1;
        for kind in ItemKind::ALL.into_iter().filter(|kind| kind.capability() == capability) {
            self.lists[kind as usize].iter_mut().for_each(|list| list.is_current = false);
        }
    }

    /// Forgets all lists, at the end of a connection.
    pub(super) fn clear(&mut self) {
        *self = ItemLists { changes: self.changes + 1, ..ItemLists::default() };
    }
}
