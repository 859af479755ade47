//! A script that is being served, with what it offers at the moment and how often that was used.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::offer::Offer;
use crate::{
    mock::script::{Kind, Rule, Script, Stub, StubRef},
    wire::Era,
};

/// The script and its counters.
#[derive(Debug)]
pub(super) struct Catalog {
    pub(super) script: Arc<Script>,
    /// The member of `_meta` that names the server.
    pub(super) server_meta: String,
    legacy_capabilities: String,
    modern_capabilities: String,
    /// How often the engine has begun anew before this one.
    pub(super) generation: u64,
    /// How often each stub was called, and each rule of it; by the number of the stub.
    calls: Vec<Calls>,
    /// How often each entry of `faults` has covered a request.
    strikes: Arc<[AtomicU64]>,
    tools: Arc<Offer>,
    resources: Arc<Offer>,
    resource_templates: Arc<Offer>,
    prompts: Arc<Offer>,
}

/// How often a stub was called, and each of its rules answered. Shared with the catalog that follows.
#[derive(Debug, Default)]
struct Calls {
    stub: Arc<AtomicU64>,
    rules: Vec<Arc<AtomicU64>>,
}

/// A rule by its stub and its position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleRef {
    pub(super) stub: StubRef,
    pub(super) index: usize,
}

impl Catalog {
    pub(super) fn new(script: Arc<Script>, seed: u64, generation: u64) -> Self {
        let offer = |kind| Arc::new(Offer::new(kind, &script, seed));
        let mut calls: Vec<_> = std::iter::repeat_with(Calls::default).take(script.stubs).collect();
        for (_, stub) in script.all_stubs() {
            calls[stub.number].rules = stub.rules.iter().map(|_| Arc::default()).collect();
        }
        let lists = [Kind::Tool, Kind::Resource, Kind::ResourceTemplate, Kind::Prompt].map(offer);
        let strikes = script.faults.iter().map(|_| AtomicU64::new(0)).collect();
        Catalog::of(script, generation, calls, strikes, lists)
    }

    /// The catalog of a script that has the same stubs as this one, but other rules. It goes on counting, and its lists
    /// are those of this one.
    pub(super) fn followed_by(&self, script: Arc<Script>) -> Self {
        let mut calls: Vec<_> = std::iter::repeat_with(Calls::default).take(script.stubs).collect();
        // A rule that was added is one, also where it stands in a stub and in what replaces it.
        let mut added: HashMap<*const Rule, Arc<AtomicU64>> = HashMap::new();
        for (stub_ref, stub) in script.all_stubs() {
            let (before, counters) = (self.script.stub(stub_ref), &self.calls[stub.number]);
            let counter = |label: &Arc<str>| {
                let index = before.rules.iter().position(|rule| rule.label == *label)?;
                counters.rules.get(index).cloned()
            };
            let rules = stub.rules.iter().map(|rule| {
                counter(&rule.label).unwrap_or_else(|| added.entry(Arc::as_ptr(rule)).or_default().clone())
            });
            calls[stub.number] = Calls { stub: counters.stub.clone(), rules: rules.collect() };
        }
        let lists = [&self.tools, &self.resources, &self.resource_templates, &self.prompts];
        Catalog::of(script, self.generation, calls, self.strikes.clone(), lists.map(Arc::clone))
    }

    fn of(
        script: Arc<Script>,
        generation: u64,
        calls: Vec<Calls>,
        strikes: Arc<[AtomicU64]>,
        lists: [Arc<Offer>; 4],
    ) -> Self {
        let [tools, resources, resource_templates, prompts] = lists;
        let capabilities = |era| serde_json::to_string(script.capabilities.of_era(era)).unwrap_or_default();
        Catalog {
            server_meta: format!("\"io.modelcontextprotocol/serverInfo\":{}", script.server_info),
            legacy_capabilities: capabilities(Era::Legacy),
            modern_capabilities: capabilities(Era::Modern),
            generation,
            calls,
            strikes,
            tools,
            resources,
            resource_templates,
            prompts,
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

    /// What is offered of a kind that has lists; of methods there is none.
    pub(super) fn offer(&self, kind: Kind) -> Option<&Offer> {
        match kind {
            Kind::Tool => Some(&self.tools),
            Kind::Resource => Some(&self.resources),
            Kind::ResourceTemplate => Some(&self.resource_templates),
            Kind::Prompt => Some(&self.prompts),
            Kind::Method => None,
        }
    }

    pub(super) fn rule(&self, rule: RuleRef) -> (&Stub, &Rule) {
        let stub = self.script.stub(rule.stub);
        (stub, &stub.rules[rule.index])
    }

    /// Counts a call of a stub; gives its number, from 1.
    pub(super) fn count(&self, stub: &Stub) -> u64 {
        self.calls[stub.number].stub.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a request that an entry of `faults` covers; gives its number, from 1.
    pub(super) fn count_strike(&self, fault: usize) -> u64 {
        self.strikes[fault].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts an answer of a rule; gives its number, from 1.
    pub(super) fn count_rule(&self, stub: &Stub, rule: usize) -> u64 {
        self.calls[stub.number].rules[rule].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How often a stub was called, and each of its rules answered.
    pub(super) fn counts(&self, stub: &Stub) -> (u64, Vec<u64>) {
        let Calls { stub, rules } = &self.calls[stub.number];
        (stub.load(Ordering::Relaxed), rules.iter().map(|rule| rule.load(Ordering::Relaxed)).collect())
    }
}
