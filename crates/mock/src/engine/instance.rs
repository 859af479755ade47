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
    journal::{Answer, AnswerKind, Handling, Journal},
    script::{Auth, HttpPolicy, ItemKind, Script},
};
use rehearse_document::state::State;
use rehearse_protocol::{Era, List, Version};

/// The engine of a mock: a script and its state, which answer requests. [`MockServer`](crate::MockServer) serves it.
///
/// ```
/// use rehearse_document::Source;
/// use rehearse_mock::{engine::Engine, journal::Journal, script::Script};
///
/// let script = Script::parse(&Source::new("s", "tools: [{ name: echo, reply: hi, expect: { calls: 1 } }]"))?;
/// let engine = Engine::new(script, 7, Journal::default());
/// assert_eq!(engine.verify().to_string(), "tools.echo: expected 1 call, got 0 calls\n");
/// # Ok::<_, rehearse_document::Diagnostics>(())
/// ```
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
    /// An engine for a script. `seed` decides all randomness.
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

    /// Replaces the script, `at` this time since the mock was started. Connections stay open; counters, state, tasks
    /// and added rules are reset. Clients are notified that the lists have changed.
    pub fn load(&self, script: Script, at: Duration) {
        let mut added = self.added.lock();
        added.clear();
        let before = self.catalog();
        self.restart(Arc::new(script), at);
        for list in List::WATCHED {
            self.publish(&before, list.change(), None);
        }
    }

    /// Restores the script as it was loaded: clears the journal, counters, state, tasks, added rules and every change
    /// of the lists. Earlier exchanges change nothing any more. Clients are notified about lists that differ.
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
        // In this order: a change of the state between the two is overwritten, and no earlier exchange changes it
        // later.
        self.catalog.store(Arc::new(Catalog::new(script, self.seed, generation)));
        self.state.replace(state);
    }

    pub(super) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Whether the engine has not been reset since it had this catalog.
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

    /// The HTTP options of the script.
    pub fn http(&self) -> HttpPolicy {
        self.catalog.load().script.http
    }

    /// Calls `read` with the `auth` of the script, if it has one.
    pub fn auth<T>(&self, look: impl FnOnce(&Auth) -> T) -> Option<T> {
        self.catalog.load().script.auth.as_ref().map(look)
    }

    /// The state that all clients share.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How many bytes the state may have.
    pub(crate) fn state_limit(&self) -> usize {
        self.catalog.load().script.limits.state
    }

    pub(super) fn millis(time: Duration) -> u64 {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    /// The messages that were received.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// How many answers are in progress.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether the script offers a protocol version.
    pub fn offers_version(&self, version: Version) -> bool {
        self.catalog.load().script.versions.contains(&version)
    }

    /// Whether the script offers a version of the era.
    pub fn offers(&self, era: Era) -> bool {
        self.catalog.load().script.versions.iter().any(|version| version.era() == era)
    }

    /// Journals a message without an answer.
    pub(super) fn note(&self, incoming: Incoming<'_>, handling: Handling) {
        self.journal.add(incoming.received(), handling, None, None);
    }

    /// Journals a request that is answered at once.
    pub(super) fn note_answer(&self, incoming: Incoming<'_>, handling: Handling, outcome: AnswerKind) {
        self.journal.add(incoming.received(), handling, None, Some(Answer::of(outcome)));
    }
}
