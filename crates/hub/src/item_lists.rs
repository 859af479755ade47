//! The resources, resource templates and prompts that one server listed.

use std::sync::Arc;

use rehearse_client::Listing;
use rehearse_protocol::List;

/// The last lists of a server; that of its tools is kept elsewhere.
#[derive(Debug, Default)]
pub(super) struct ItemLists {
    lists: [Option<ItemList>; List::ALL.len()],
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
    pub(super) fn last(&self, list: List) -> Option<&Arc<Listing>> {
        self.lists[list as usize].as_ref().map(|it| &it.listing)
    }

    /// The last list, unless the server must be asked again.
    pub(super) fn current(&self, list: List) -> Option<&Arc<Listing>> {
        self.lists[list as usize].as_ref().filter(|it| it.is_current).map(|it| &it.listing)
    }

    /// How often lists became old.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn set(&mut self, list: List, listing: Arc<Listing>, is_current: bool) {
        self.lists[list as usize] = Some(ItemList { listing, is_current });
    }

    /// The lists of this capability are no longer current.
    pub(super) fn outdate(&mut self, capability: &str) {
        self.changes += 1;
        for list in List::ALL.into_iter().filter(|list| list.capability() == capability) {
            self.lists[list as usize].iter_mut().for_each(|it| it.is_current = false);
        }
    }

    /// Forgets all lists, at the end of a connection.
    pub(super) fn clear(&mut self) {
        *self = ItemLists { changes: self.changes + 1, ..ItemLists::default() };
    }
}
