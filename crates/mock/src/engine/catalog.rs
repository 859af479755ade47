//! A script that is being served, with its visible items and their counters.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use super::visible_items::VisibleItems;
use crate::script::{Item, ItemKind, ItemRef, Rule, Script};
use rehearse_protocol::{Era, names::META_SERVER_INFO};

/// The script and its counters.
#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) script: Arc<Script>,
    /// The member of `_meta` that names the server.
    pub(super) server_meta: String,
    legacy_capabilities: String,
    modern_capabilities: String,
    /// The number of resets before this catalog.
    pub(super) generation: u64,
    /// How often each item was called, and each rule of it; by the number of the item.
    calls: Vec<CallCounters>,
    /// How often each entry of `faults` has covered a request.
    strikes: Arc<[AtomicU64]>,
    /// The visible items, in the order of [`ItemKind`].
    lists: [Arc<VisibleItems>; 4],
}

/// The number of calls of an item, and of answers of each of its rules. Shared with the next catalog.
#[derive(Debug, Default)]
struct CallCounters {
    item: Arc<AtomicU64>,
    rules: Vec<Arc<AtomicU64>>,
}

/// A rule by its item and its position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleRef {
    pub(super) item: ItemRef,
    pub(super) index: usize,
}

/// The number of the call of the item and of the answer of the rule, counted from 1.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CallCounts {
    pub(super) item_calls: u64,
    pub(super) rule_calls: u64,
}

impl Catalog {
    pub(super) fn new(script: Arc<Script>, seed: u64, generation: u64) -> Self {
        let visible = |kind| Arc::new(VisibleItems::new(kind, &script, seed));
        let mut calls: Vec<_> = std::iter::repeat_with(CallCounters::default).take(script.item_count).collect();
        for (_, item) in script.all_items() {
            calls[item.number].rules = item.rules.iter().map(|_| Arc::default()).collect();
        }
        let lists = [ItemKind::Tool, ItemKind::Resource, ItemKind::ResourceTemplate, ItemKind::Prompt].map(visible);
        let strikes = script.faults.iter().map(|_| AtomicU64::new(0)).collect();
        Catalog::from_parts(script, generation, calls, strikes, lists)
    }

    /// The catalog of a script that has the same items as this one, but other rules. It keeps the counters, and its
    /// lists are those of this one.
    pub(super) fn with_script(&self, script: Arc<Script>) -> Self {
        let mut calls: Vec<_> = std::iter::repeat_with(CallCounters::default).take(script.item_count).collect();
        // An added rule counts once, even if it is in an item and in its replacements.
        let mut added: HashMap<*const Rule, Arc<AtomicU64>> = HashMap::new();
        for (item_ref, item) in script.all_items() {
            let (before, counters) = (self.script.item(item_ref), &self.calls[item.number]);
            let counter = |label: &Arc<str>| {
                let index = before.rules.iter().position(|rule| rule.label == *label)?;
                counters.rules.get(index).cloned()
            };
            let rules = item.rules.iter().map(|rule| {
                counter(&rule.label).unwrap_or_else(|| added.entry(Arc::as_ptr(rule)).or_default().clone())
            });
            calls[item.number] = CallCounters { item: counters.item.clone(), rules: rules.collect() };
        }
        Catalog::from_parts(script, self.generation, calls, self.strikes.clone(), self.lists.clone())
    }

    fn from_parts(
        script: Arc<Script>,
        generation: u64,
        calls: Vec<CallCounters>,
        strikes: Arc<[AtomicU64]>,
        lists: [Arc<VisibleItems>; 4],
    ) -> Self {
        let capabilities = |era| serde_json::to_string(script.capabilities.for_era(era)).unwrap_or_default();
        Catalog {
            server_meta: format!("\"{META_SERVER_INFO}\":{}", script.server_info),
            legacy_capabilities: capabilities(Era::Legacy),
            modern_capabilities: capabilities(Era::Modern),
            generation,
            calls,
            strikes,
            lists,
            script,
        }
    }

    /// The `ServerCapabilities` as JSON text.
    pub(super) fn capabilities(&self, era: Era) -> &str {
        match era {
            Era::Legacy => &self.legacy_capabilities,
            Era::Modern => &self.modern_capabilities,
        }
    }

    /// The visible items of a kind; `None` for methods, which have no list.
    pub(super) fn visible(&self, kind: ItemKind) -> Option<&VisibleItems> {
        self.lists.get(kind as usize).map(|list| &**list)
    }

    pub(super) fn rule(&self, rule: RuleRef) -> (&Item, &Rule) {
        let item = self.script.item(rule.item);
        (item, &item.rules[rule.index])
    }

    /// Counts a call of an item; gives its number, from 1.
    pub(super) fn count(&self, item: &Item) -> u64 {
        self.calls[item.number].item.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a request that an entry of `faults` covers; gives its number, from 1.
    pub(super) fn count_strike(&self, fault: usize) -> u64 {
        self.strikes[fault].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts an answer of a rule; gives its number, from 1.
    pub(super) fn count_rule(&self, item: &Item, rule: usize) -> u64 {
        self.calls[item.number].rules[rule].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How often an item was called, and each of its rules answered.
    pub(super) fn counts(&self, item: &Item) -> (u64, Vec<u64>) {
        let CallCounters { item, rules } = &self.calls[item.number];
        (item.load(Ordering::Relaxed), rules.iter().map(|rule| rule.load(Ordering::Relaxed)).collect())
    }
}
