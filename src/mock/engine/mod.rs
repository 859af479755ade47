//! The mock engine: a script and its state, without any IO.
//!
//! A frame goes in with [`Engine::receive`]; what comes out is an [`Intake`]: nothing, an answer, the cancellation of an
//! earlier request, or an [`Exchange`], which is asked for one [`Event`] after another until it has finished. Whoever
//! drives it does the waiting and the sending, so that one engine behaves the same on every transport.

mod added;
mod ask;
mod block;
mod call;
mod catalog;
mod client_answer;
mod envelope;
mod exchange;
mod legacy;
mod listen;
mod methods;
mod modern;
mod offer;
mod outcome;
mod pages;
mod params;
mod peer;
mod question;
mod seal;
mod seed;
mod skills;
mod strike;
mod tasks;
mod verify;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::HeaderMap;

pub use added::RuleStatus;
pub use exchange::{Event, Exchange};
pub use listen::{Listen, Subscription};
pub use modern::VERSION_HEADER;
pub use peer::{Outlet, Peer};
pub use seed::Seed;
pub use strike::Faulty;
pub use verify::{Unmet, Verification};

/// Names the session of a legacy HTTP request.
pub const SESSION_HEADER: &str = "mcp-session-id";

use self::{
    added::Added,
    catalog::Catalog,
    envelope::{Envelope, is_cacheable},
    listen::Audience,
    seal::Seal,
    tasks::Tasks,
};
use super::{
    journal::{Handling, Journal},
    script::{Auth, Challenge, HttpPolicy, Kind, Script, Token},
    state::State,
};
use crate::{
    transport::Transport,
    wire::{
        Era, Id, Message, Notification, Request, RpcError, Version,
        message::{self, METHOD_NOT_FOUND},
    },
};

/// A frame as it reached the mock.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    pub bytes: &'a Bytes,
    pub transport: Transport,
    /// Time since the mock was started.
    pub at: Duration,
    /// The headers of the request that carried the frame or opened its connection; `None` where a transport has none.
    pub headers: Option<&'a HeaderMap>,
    /// What the client has shown that it may do, if the server wants to know.
    pub token: Option<&'a Token>,
    /// The names of the faults that strike its answer, for the journal.
    pub faults: &'a [&'static str],
}

impl<'a> Incoming<'a> {
    /// The headers that repeat what the message says, as those of streamable HTTP do.
    fn mirror(&self) -> Option<&'a HeaderMap> {
        self.headers.filter(|_| self.transport == Transport::Http)
    }
}

/// What to do about a frame.
#[derive(Debug)]
pub enum Intake {
    /// Nothing is answered.
    Silent,
    /// The client gave up this request.
    Cancel(Id),
    Answer(Answer),
    /// The answer takes several steps.
    Exchange(Box<Exchange>),
    /// The client listens for changes from here on.
    Listen(Listen),
    /// Faults strike the answer.
    Faulty(Box<Faulty>),
    /// One intake for every message of a batch (2025-03-26 only).
    Batch(Vec<Intake>),
}

/// A response and the HTTP status that it has where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub frame: Bytes,
    /// The client must show that it may do more.
    pub challenge: Option<Challenge>,
}

impl Answer {
    fn new(status: u16, frame: Bytes) -> Answer {
        Answer { status, frame, challenge: None }
    }

    /// An answer without anything special about it.
    pub fn ok(frame: Bytes) -> Answer {
        Answer::new(200, frame)
    }
}

/// A script that is being served: the script and everything that changes while it is.
#[derive(Debug)]
pub struct Engine {
    catalog: ArcSwap<Catalog>,
    added: Added,
    seed: u64,
    state: Arc<State>,
    journal: Journal,
    audience: Audience,
    tasks: Tasks,
    seal: Seal,
    /// When the mock was started.
    epoch: SystemTime,
    in_flight: AtomicUsize,
}

impl Engine {
    /// `seed` decides everything that is random.
    pub fn new(script: Script, seed: impl Into<Seed>, journal: Journal) -> Arc<Engine> {
        let seed = seed.into();
        let (seal, seed) = (Seal::new(&seed.key()), seed.number());
        Arc::new(Engine {
            state: Arc::new(State::new(script.state.clone())),
            catalog: ArcSwap::from_pointee(Catalog::new(Arc::new(script), seed, 0)),
            added: Added::default(),
            seed,
            journal,
            audience: Audience::default(),
            tasks: Tasks::default(),
            seal,
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
        for kind in [Kind::Tool, Kind::Prompt, Kind::Resource] {
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
        let lists = |kind| before.offer(kind).zip(after.offer(kind));
        let differs = |kind| lists(kind).is_some_and(|(before, after)| before.view().differs(&after.view()));
        for kinds in [&[Kind::Tool][..], &[Kind::Prompt], &[Kind::Resource, Kind::ResourceTemplate]] {
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

    fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Whether the engine has not begun anew since it had this catalog.
    fn goes_on(&self, catalog: &Catalog) -> bool {
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

    fn millis(time: Duration) -> u64 {
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

    /// Which era a message belongs to, from how it opens (2026-07-28, Versioning: Backward Compatibility): modern if
    /// it carries a protocol version of its own or a header that no legacy version has, or if only that is offered.
    pub fn era_of(&self, message: &Message<'_>, headers: Option<&HeaderMap>) -> Era {
        if !self.offers(Era::Legacy) {
            return Era::Modern;
        }
        if !self.offers(Era::Modern) {
            return Era::Legacy;
        }
        let params = match message {
            Message::Request(Request { params, .. }) | Message::Notification(Notification { params, .. }) => *params,
            Message::Response(_) => None,
        };
        let in_session = headers.is_some_and(|headers| headers.contains_key(SESSION_HEADER));
        let header = headers.and_then(|headers| headers.get(VERSION_HEADER));
        let modern_header = header.is_some_and(|header| {
            let version = header.to_str().ok().and_then(|text| text.parse::<Version>().ok());
            version.map_or(!in_session, |version| version.era() == Era::Modern)
        });
        let is_handshake = message.method() == Some("initialize");
        let is_discover = headers.is_none() && message.method() == Some("server/discover");
        if (modern_header && !is_handshake) || is_discover || params::is_modern(params) {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    /// Takes a frame from a connection whose peer has state: every transport but streamable HTTP.
    pub fn receive(self: &Arc<Self>, peer: &Arc<Peer>, incoming: Incoming<'_>) -> Intake {
        match Message::parse(incoming.bytes) {
            Ok(message) => match self.era_of(&message, incoming.mirror()) {
                Era::Modern if incoming.transport.carries(Version::LATEST) => self.receive_modern(message, incoming),
                _ => self.receive_legacy(peer, message, incoming),
            },
            Err(error) => self.receive_broken(peer, error, incoming),
        }
    }

    /// Takes a frame that is no single message: a batch where the version has batches, else an error.
    pub fn receive_broken(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        error: crate::wire::ParseError,
        incoming: Incoming<'_>,
    ) -> Intake {
        if error == crate::wire::ParseError::Batch && peer.version() == Some(Version::V2025_03_26) {
            let parts = match message::split_batch(incoming.bytes) {
                Ok(parts) => parts,
                Err(error) => return self.refuse_frame(&error, incoming),
            };
            let receive = |bytes: &Bytes| match Message::parse(bytes) {
                Ok(message) => self.receive_legacy(peer, message, Incoming { bytes, ..incoming }),
                Err(error) => self.refuse_frame(&error, Incoming { bytes, ..incoming }),
            };
            return Intake::Batch(parts.iter().map(receive).collect());
        }
        self.refuse_frame(&error, incoming)
    }

    fn refuse_frame(&self, error: &crate::wire::ParseError, incoming: Incoming<'_>) -> Intake {
        self.note(incoming, Handling::Refused(error.to_string()));
        let error_object = RpcError::new(error.code(), error.to_string());
        Intake::Answer(Answer::new(400, message::error(error.request_id(), &error_object)))
    }

    /// Takes a notification, whose handling is the same in both eras.
    fn receive_notification(&self, notification: &Notification<'_>, incoming: Incoming<'_>) -> Intake {
        self.note(incoming, Handling::Protocol);
        match (&*notification.method, params::cancelled_id(notification.params)) {
            ("notifications/cancelled", Some(id)) => Intake::Cancel(id),
            _ => Intake::Silent,
        }
    }

    fn note(&self, incoming: Incoming<'_>, handling: Handling) {
        self.journal.record_struck(incoming.at, incoming.transport, incoming.bytes, handling, incoming.faults);
    }

    /// Journals the refusal of a request and answers it with an error.
    fn refuse(&self, request: &Request<'_>, status: u16, error: RpcError, incoming: Incoming<'_>) -> Intake {
        // A client that finds out which era a server speaks asks for what the other era has.
        let is_probe = matches!(&*request.method, "initialize" | "server/discover");
        let why = error.message.clone();
        self.note(
            incoming,
            match error.code {
                METHOD_NOT_FOUND if !is_probe => Handling::Miss { nearest: None, why },
                _ => Handling::Refused(why),
            },
        );
        Intake::Answer(Answer::new(status, message::error(Some(&request.id), &error)))
    }

    /// Journals a request that the protocol itself answers, with the members of its result.
    fn answer(
        &self,
        catalog: &Catalog,
        request: &Request<'_>,
        era: Era,
        members: &str,
        incoming: Incoming<'_>,
    ) -> Intake {
        self.note(incoming, Handling::Protocol);
        let cache = is_cacheable(&request.method).then(|| catalog.cache_scope(false));
        let result = catalog.result(era, members, Envelope { cache, ..Envelope::default() });
        Intake::Answer(Answer::ok(message::result(&request.id, &result)))
    }
}

#[cfg(test)]
mod test_client;
#[cfg(test)]
mod tests;
