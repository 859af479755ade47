//! A script that is being served, with what it offers at the moment and how often that was used.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
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
    /// How often each stub was called, and each rule of it; by the number of the stub.
    calls: Vec<(AtomicU64, Vec<AtomicU64>)>,
    /// How often each entry of `faults` has covered a request.
    strikes: Vec<AtomicU64>,
    tools: Offer,
    resources: Offer,
    resource_templates: Offer,
    prompts: Offer,
}

/// A rule by its stub and its position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleRef {
    pub(super) stub: StubRef,
    pub(super) index: usize,
}

impl Catalog {
    pub(super) fn new(script: Arc<Script>, seed: u64) -> Self {
        let mut calls: Vec<_> = std::iter::repeat_with(Default::default).take(script.stubs).collect();
        for (_, stub) in script.all_stubs() {
            calls[stub.number] = (AtomicU64::new(0), stub.rules.iter().map(|_| AtomicU64::new(0)).collect());
        }
        let capabilities = |era| serde_json::to_string(script.capabilities.of_era(era)).unwrap_or_default();
        Catalog {
            server_meta: format!("\"io.modelcontextprotocol/serverInfo\":{}", script.server_info),
            legacy_capabilities: capabilities(Era::Legacy),
            modern_capabilities: capabilities(Era::Modern),
            calls,
            strikes: script.faults.iter().map(|_| AtomicU64::new(0)).collect(),
            tools: Offer::new(Kind::Tool, &script, seed),
            resources: Offer::new(Kind::Resource, &script, seed),
            resource_templates: Offer::new(Kind::ResourceTemplate, &script, seed),
            prompts: Offer::new(Kind::Prompt, &script, seed),
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
        self.calls[stub.number].0.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a request that an entry of `faults` covers; gives its number, from 1.
    pub(super) fn count_strike(&self, fault: usize) -> u64 {
        self.strikes[fault].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts an answer of a rule; gives its number, from 1.
    pub(super) fn count_rule(&self, stub: &Stub, rule: usize) -> u64 {
        self.calls[stub.number].1[rule].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How often a stub was called, and each of its rules answered.
    pub(super) fn counts(&self, stub: &Stub) -> (u64, Vec<u64>) {
        let (calls, rules) = &self.calls[stub.number];
        (calls.load(Ordering::Relaxed), rules.iter().map(|rule| rule.load(Ordering::Relaxed)).collect())
    }
}
