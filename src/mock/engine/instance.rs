//! The engine: a script that is being served, and everything that changes while it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;

use super::{
    added_rules::AddedRules, catalog::Catalog, frames::Incoming, seed::Seed, signer::RequestStateSigner,
    subscribers::Subscribers, task::Tasks,
};
use crate::{
    mock::{
        journal::{Handling, Journal},
        script::{Auth, HttpPolicy, ItemKind, Script},
        state::State,
    },
    wire::{Era, Version},
};

/// A script that is being served: the script and everything that changes while it is.
#[derive(Debug)]
pub struct Engine {
    pub(super) catalog: ArcSwap<Catalog>,
    pub(super) added: AddedRules,
    pub(super) seed: u64,
    pub(super) state: Arc<State>,
    pub(super) journal: Journal,
    pub(super) subscribers: Subscribers,
    pub(super) tasks: Tasks,
    pub(super) signer: RequestStateSigner,
    /// When the mock was started.
    pub(super) epoch: SystemTime,
    pub(super) in_flight: AtomicUsize,
}

impl Engine {
    /// `seed` decides everything that is random.
    pub fn new(script: Script, seed: impl Into<Seed>, journal: Journal) -> Arc<Engine> {
        let seed = seed.into();
        let (signer, seed) = (RequestStateSigner::new(&seed.key()), seed.number());
        Arc::new(Engine {
            state: Arc::new(State::new(script.state.clone())),
            catalog: ArcSwap::from_pointee(Catalog::new(Arc::new(script), seed, 0)),
            added: AddedRules::default(),
            seed,
            journal,
            subscribers: Subscribers::default(),
            tasks: Tasks::default(),
            signer,
            epoch: SystemTime::now(),
            in_flight: AtomicUsize::new(0),
        })
    }

    /// Serves another script from here on, `at` this time since the mock was started. Connections stay; counters,
    /// state and tasks begin anew, and added rules are gone. Clients are told that the lists have changed.
    pub fn load(&self, script: Script, at: Duration) {
        let mut added = self.added.lock();
        added.clear();
        let before = self.catalog();
        self.restart(Arc::new(script), at);
        for kind in [ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource] {
            self.publish_change(&before, kind);
        }
    }

    /// Begins anew with the script as it was loaded: the journal, counters, state, tasks, added rules and every change
    /// of the lists are gone, and what was begun before changes nothing any more. Clients are told which lists are others now.
    pub fn reset(&self, at: Duration) {
        let mut added = self.added.lock();
        let script = self.original(&mut added);
        let before = self.catalog();
        self.restart(script, at);
        self.journal.reset();
        let after = self.catalog();
        let lists = |kind| before.visible(kind).zip(after.visible(kind));
        let differs = |kind| lists(kind).is_some_and(|(before, after)| before.view().differs(&after.view()));
        for kinds in [&[ItemKind::Tool][..], &[ItemKind::Prompt], &[ItemKind::Resource, ItemKind::ResourceTemplate]] {
            if kinds.iter().copied().any(differs) {
                self.publish_change(&after, kinds[0]);
            }
        }
    }

    fn restart(&self, script: Arc<Script>, at: Duration) {
        self.forget_tasks(at);
        let (state, generation) = (script.state.clone(), self.catalog.load().generation + 1);
        // In this order: what changes the state between the two is overwritten, and nothing of before comes after.
        self.catalog.store(Arc::new(Catalog::new(script, self.seed, generation)));
        self.state.replace(state);
    }

    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Whether the engine has not begun anew since it had this catalog.
    pub(super) fn goes_on(&self, catalog: &Catalog) -> bool {
        self.catalog.load().generation == catalog.generation
    }

    /// The name of the server that is served.
    pub fn name(&self) -> String {
        self.catalog.load().script.name.clone()
    }

    /// The versions that are offered, oldest first.
    pub fn versions(&self) -> Vec<Version> {
        self.catalog.load().script.versions.clone()
    }

    /// How the script wants to be served over HTTP.
    pub fn http(&self) -> HttpPolicy {
        self.catalog.load().script.http
    }

    /// Who asks, and what the server's metadata are, if the script says who may use it.
    pub fn auth<T>(&self, look: impl FnOnce(&Auth) -> T) -> Option<T> {
        self.catalog.load().script.auth.as_ref().map(look)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn millis(time: Duration) -> u64 {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// How many answers are under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub fn offers_version(&self, version: Version) -> bool {
        self.catalog.load().script.versions.contains(&version)
    }

    /// Whether the script offers a version of the era.
    pub fn offers(&self, era: Era) -> bool {
        self.catalog.load().script.versions.iter().any(|version| version.era() == era)
    }

    pub(super) fn note(&self, incoming: Incoming<'_>, handling: Handling) {
        self.journal.record_struck(incoming.at, incoming.transport, incoming.bytes, handling, incoming.faults);
    }
}
