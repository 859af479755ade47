//! What is offered of one kind at the moment. Looking takes no lock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use super::pages::Pages;
use crate::mock::script::{Change, Kind, Script, StubRef};

/// The tools (or resources, …) that clients can see and use.
#[derive(Debug)]
pub(super) struct Offer {
    kind: Kind,
    seed: u64,
    slots: Mutex<Vec<Slot>>,
    view: ArcSwap<View>,
}

/// A place in the list.
#[derive(Debug, Clone)]
struct Slot {
    name: String,
    /// The position of the stub in the script.
    index: usize,
    enabled: bool,
}

/// The enabled ones, as clients see them.
#[derive(Debug)]
pub(super) struct View {
    by_name: HashMap<String, usize>,
    order: Vec<usize>,
    pages: Pages,
}

impl Offer {
    pub(super) fn new(kind: Kind, script: &Script, seed: u64) -> Self {
        let slot = |index| {
            let stub = script.stub(StubRef { kind, index });
            Slot { name: stub.name.clone(), index, enabled: stub.enabled }
        };
        let slots: Vec<_> = (0..script.declared(kind)).map(slot).collect();
        let view = ArcSwap::from_pointee(View::new(kind, script, &slots, seed));
        Offer { kind, seed, slots: Mutex::new(slots), view }
    }

    pub(super) fn view(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    /// Makes the change; whether anything is different now.
    pub(super) fn change(&self, script: &Script, change: &Change) -> bool {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = match change {
            Change::Enable(_, name) => set_enabled(&mut slots, name, true),
            Change::Disable(_, name) => set_enabled(&mut slots, name, false),
            Change::Replace(kind, replacement) => {
                let index = script.declared(*kind) + replacement;
                let name = &script.stub(StubRef { kind: *kind, index }).name;
                match slots.iter_mut().find(|slot| slot.name == *name) {
                    Some(slot) => {
                        let before = (slot.index, slot.enabled);
                        (slot.index, slot.enabled) = (index, true);
                        before != (index, true)
                    }
                    None => {
                        slots.push(Slot { name: name.clone(), index, enabled: true });
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

fn set_enabled(slots: &mut [Slot], name: &str, enabled: bool) -> bool {
    let slot = slots.iter_mut().find(|slot| slot.name == name && slot.enabled != enabled);
    slot.map(|slot| slot.enabled = enabled).is_some()
}

impl View {
    fn new(kind: Kind, script: &Script, slots: &[Slot], seed: u64) -> Self {
        let enabled: Vec<_> = slots.iter().filter(|slot| slot.enabled).collect();
        let definitions: Vec<_> =
            enabled.iter().map(|slot| script.definition(StubRef { kind, index: slot.index })).collect();
        View {
            by_name: enabled.iter().map(|slot| (slot.name.clone(), slot.index)).collect(),
            order: enabled.iter().map(|slot| slot.index).collect(),
            pages: Pages::new(kind.list_key(), &definitions, script.page_size, seed),
        }
    }

    /// The position in the script of what has this name.
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

    /// A page of the list, as members of its result.
    pub(super) fn page(&self, cursor: Option<&str>) -> Option<&str> {
        self.pages.get(cursor)
    }
}
